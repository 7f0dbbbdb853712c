//! Comparisons between controllers that played the same episodes, and between methods that trained several times: the results
//! read back from runs, and the statistics of experiments.

pub mod statistics;
mod episodes;
mod metric;
mod decisions;
mod comparison;
mod training;
mod methods;

pub use comparison::{Comparison, ControllerSummary, Difference, Paired, Played, Summary};
pub use decisions::{DecisionSummary, SlotCommits};
pub use episodes::{Candidate, EpisodeOutcome, Episodes, PlayedEpisodes, play_until};
pub use methods::{
    ComparisonPlan, LeftOut, MethodComparison, MethodDifference, MethodSummary, MethodTraining, ScoredTraining,
};
pub use metric::Metric;
pub use statistics::{Estimate, Interval};
pub use training::{RoundPoint, TrainingRecord};
