//! What a checkpoint keeps of a learner beside its optimizer's moments, and how it differs from a live one's. No
//! generator state: every draw is derived from seed and round.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::reward_norm::RewardNormalizer;
use super::value_norm::ValueNormalizer;
use crate::torch::{HostSyncCounter, TorchError, read_f64};

/// Names of second moments begin with it.
const SQUARES: &str = "exp_avg_sq.";

/// How far learning has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Successful updates: what all schedules run on.
    pub updates: u64,
    /// Failed updates since the last successful one.
    pub consecutive_failures: u32,
}

/// The plain part of a learner's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnerState {
    /// Updates so far.
    pub counters: Counters,
    /// Statistics of rewards.
    pub rewards: RewardNormalizer,
    /// Statistics of returns.
    pub values: ValueNormalizer,
}

/// One line for everything in the plain state that is not finite.
pub(super) fn nonfinite_numbers(saved: &LearnerState) -> Vec<String> {
    let finite = |is_finite: bool, what: &str| (!is_finite).then(|| format!("{what} are not finite"));
    [
        finite(saved.rewards.moments.is_finite(), "the statistics of rewards"),
        finite(saved.values.moments.is_finite(), "the statistics of returns"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One line for every tensor with a value that no optimizer can have come to: not finite, or a negative second moment.
///
/// # Errors
/// A device error.
pub(super) fn impossible_tensors(saved: &[(String, Tensor)]) -> Result<Vec<String>, TorchError> {
    let mut impossible = Vec::new();
    for (name, tensor) in saved {
        let values = read_f64(tensor, &HostSyncCounter::default())?;
        let is_negative = name.starts_with(SQUARES) && values.iter().any(|&value| value < 0.0);
        if !values.iter().all(|value| value.is_finite()) {
            impossible.push(format!("`{name}` holds values that are not finite"));
        } else if is_negative {
            impossible.push(format!("`{name}` holds squares below 0"));
        }
    }
    Ok(impossible)
}

/// One line for every tensor that is missing, unknown, or of another shape or kind.
pub(super) fn differences_of_tensors(saved: &[(String, Tensor)], live: &[(String, Tensor)]) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, tensor) in live {
        match saved.iter().find(|(saved, _)| saved == name) {
            None => differences.push(format!("`{name}` is missing")),
            Some((_, saved)) if saved.size() != tensor.size() => {
                let (old, new) = (saved.size(), tensor.size());
                differences.push(format!("`{name}` has the shape {old:?}, expected {new:?}"));
            }
            Some((_, saved)) if saved.kind() != tensor.kind() => {
                let (old, new) = (saved.kind(), tensor.kind());
                differences.push(format!("`{name}` is {old:?}, expected {new:?}"));
            }
            Some(_) => {}
        }
    }
    let unknown = saved
        .iter()
        .filter(|(name, _)| live.iter().all(|(live, _)| live != name));
    differences.extend(unknown.map(|(name, _)| format!("`{name}` is no tensor of this learner")));
    differences
}
