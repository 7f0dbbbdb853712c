//! What each seed contributes, as measured (spec 07 §5.4).

use serde::{Deserialize, Serialize};

use crate::growth::SlotId;
use crate::telemetry::encoding::{BigInteger, Num};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    Full,
    Ablation,
    Sampled,
}

/// One measured configuration: bit i of `mask` is on where `slots[i]` was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoalitionRow {
    pub mask: BigInteger,
    pub accuracy: Num,
    pub loss: Num,
    /// Samples that only all-on got right, and that only this configuration got right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discordant: Option<(u64, u64)>,
}

/// Measured configurations only; missing ones stay missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterfactualMatrix {
    /// The players.
    pub slots: Vec<SlotId>,
    pub seed_ids: Vec<String>,
    pub alphas: Vec<Num>,
    pub rows: Vec<CoalitionRow>,
    pub samples: u64,
    pub coverage: Coverage,
    pub dropped: Vec<BigInteger>,
    pub total_ms: Num,
    /// Forward cost of the pass as it ran, and of one whole forward per configuration, in floating-point operations.
    pub val_flops: u64,
    pub val_flops_naive: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShapleyMethod {
    Exact,
    Permutation,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShapleyValue {
    pub mean: Num,
    pub std: Num,
    pub n: u32,
}

/// Shapley values in points, parallel to `slots` and `seed_ids`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shapley {
    pub slots: Vec<SlotId>,
    pub seed_ids: Vec<String>,
    pub values: Vec<ShapleyValue>,
    pub method: ShapleyMethod,
    pub efficiency_gap: Num,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairInteraction {
    pub a: SlotId,
    pub b: SlotId,
    pub value: Num,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interactions {
    pub pairs: Vec<PairInteraction>,
}
