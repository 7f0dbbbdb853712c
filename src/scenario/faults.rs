//! Section `faults`: damage done on purpose, for tests and to see the governor work (spec 02 §8.11).

use serde::{Deserialize, Serialize};

/// One fault, applied once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultEntry {
    pub env: usize,
    /// 0-based.
    pub round: u32,
    /// 1-based.
    pub step: u32,
    /// Training batch of the step, from 0; `None`: its first.
    pub batch: Option<usize>,
    pub fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Weights of the host are no numbers any more: so is every loss from here on.
    NanWeight,
    /// The host's gradient is no number in this batch.
    NanGrad,
    /// Multiplies every trainable value of the host.
    ScaleWeights(f64),
    /// Multiplies every trainable value of the seed in a slot.
    ScaleSeed { slot: String, factor: f64 },
    /// The step's validation loss is replaced before the governor sees it.
    LossSpike(f64),
}

impl Fault {
    /// As written in a scenario.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NanWeight => "nan_weight",
            Self::NanGrad => "nan_grad",
            Self::ScaleWeights(_) => "scale_weights",
            Self::ScaleSeed { .. } => "scale_seed",
            Self::LossSpike(_) => "loss_spike",
        }
    }
}
