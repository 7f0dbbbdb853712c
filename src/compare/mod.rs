//! Comparisons between controllers that played the same episodes, and the statistics of experiments.

mod comparison;
mod episodes;
pub mod statistics;

pub use comparison::{Comparison, ControllerSummary, Difference, Paired, Played, Summary};
pub use episodes::{Candidate, EpisodeOutcome, Episodes, PlayedEpisodes, play};
pub use statistics::{Estimate, Interval};
