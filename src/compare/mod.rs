//! Comparisons between controllers that played the same episodes: estimates with intervals, and paired differences.

mod comparison;
mod episodes;
mod statistics;

pub use comparison::{Comparison, ControllerSummary, Difference, Estimate, Paired, Played, Summary};
pub use episodes::{Candidate, EpisodeOutcome, Episodes, PlayedEpisodes, play, play_until};
pub use statistics::{Interval, bootstrap_interval, iqm, mean, percentile};
