//! The control experiments of a trained policy: what reviewers of work on growing networks ask for first. Would the host have
//! done without growing? Would the architecture that was grown do from scratch, with as many steps, as much compute or as much
//! time? Would a wider host, a schedule found by chance, a rule?
//!
//! Everybody plays the same episodes, in the loop of every run (`compare::episodes`), and none of them was trained on. In: a
//! frozen policy and its scenario ([`Study`]). Out: a [`ControlReport`], whose unit is the episode: it is about this one
//! training.

mod search;
mod study;
mod report;

pub use report::{Against, ControlReport, ControlRow};
pub use search::{Search, Spent};
pub use study::{PlayedRow, Study, Told};

use serde::Serialize;

/// A control experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// The host alone.
    NeverGrown,
    /// In each episode the architecture that the policy grew in it, from scratch, for as many steps.
    EqualEpochs,
    /// The same, for as many multiply-accumulates as the policy's episodes took.
    EqualCompute,
    /// The same, for as many seconds.
    EqualSeconds,
    /// A host so wide that it has no fewer parameters than the grown networks.
    Widened,
    /// The best of many schedules that were drawn: by accuracy, and by accuracy less what the size costs.
    Schedules,
    /// The rule-based controller.
    Heuristic,
    /// A seed every so many steps.
    Periodic,
    /// A seed after an interval that follows the risk of overfitting.
    Fragrow,
}

impl Control {
    /// As tables call it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NeverGrown => "never grown",
            Self::EqualEpochs => "final, equal epochs",
            Self::EqualCompute => "final, equal compute",
            Self::EqualSeconds => "final, equal seconds",
            Self::Widened => "host widened",
            Self::Schedules => "best drawn schedules",
            Self::Heuristic => "heuristic",
            Self::Periodic => "periodic",
            Self::Fragrow => "fragrow",
        }
    }

    /// The controls of `asked`, each once and in order, all of them if none is asked for; with those that others rest on.
    pub fn wanted(asked: &[Self]) -> Vec<Self> {
        let mut wanted = match asked {
            [] => <Self as clap::ValueEnum>::value_variants().to_vec(),
            _ => asked.to_vec(),
        };
        // How many steps they are given follows from what a step of it takes.
        if wanted.contains(&Self::EqualCompute) || wanted.contains(&Self::EqualSeconds) {
            wanted.push(Self::EqualEpochs);
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }
}

#[cfg(test)]
mod tests;
