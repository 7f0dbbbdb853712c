//! Section `task`: what an env trains on (spec 02 §1). Names are looked up once; nothing else is keyed on them.

use serde::{Deserialize, Serialize};

/// `preset("digits_impaired", (batch_size: 64))` or `custom((..))`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskChoice {
    Preset(String, Box<TaskOverrides>),
    Custom(Box<TaskSpec>),
}

impl Default for TaskChoice {
    fn default() -> Self {
        Self::Preset("digits_impaired".into(), Box::default())
    }
}

/// The task fields that a scenario may change on a preset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskOverrides {
    pub batch_size: Option<usize>,
    pub batches_per_step: Option<BatchesPerStep>,
    pub val_batch_size: Option<usize>,
    pub val_batches_per_step: Option<ValBatches>,
    pub max_steps: Option<u32>,
    pub host_opt: Option<OptimizerConfig>,
    pub seed_opt: Option<OptimizerConfig>,
    pub max_grad_norm: Option<f64>,
    pub label_smoothing: Option<f64>,
    pub data: Option<DataSource>,
    pub host: Option<CnnSpec>,
}

/// A task in full: plain data, no code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    pub name: String,
    pub classes: i64,
    pub data: DataSource,
    pub split: SplitSpec,
    pub normalise: Normalise,
    pub augment: Option<AugmentSpec>,
    pub host: CnnSpec,
    pub slots: Vec<String>,
    /// 0 = unlimited.
    pub max_seeds: u32,
    pub batch_size: usize,
    pub batches_per_step: BatchesPerStep,
    /// `None`: 4 × `batch_size`.
    pub val_batch_size: Option<usize>,
    pub val_batches_per_step: ValBatches,
    pub max_steps: u32,
    pub host_opt: OptimizerConfig,
    pub seed_opt: OptimizerConfig,
    /// L2 norm to which host and each seed are clipped separately; `None`: off.
    pub max_grad_norm: Option<f64>,
    pub label_smoothing: f64,
    pub baseline_loss: f64,
    pub target_loss: f64,
    pub typical_loss_delta_std: f64,
    pub success_accuracy: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataSource {
    Digits,
    SynthImages(SynthImages),
    /// User-supplied IDX pair, split like the digits.
    Idx {
        images: String,
        labels: String,
        scale: f64,
    },
}

/// Parameters of the procedural image generator (spec 02 §7.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SynthImages {
    pub seed: u64,
    pub classes: u64,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    pub noise: i64,
    pub distractors: usize,
    pub periods: (i64, i64),
    pub train: usize,
    pub val: usize,
    pub test: usize,
}

impl Default for SynthImages {
    fn default() -> Self {
        Self {
            seed: 0,
            classes: 10,
            channels: 3,
            height: 32,
            width: 32,
            noise: 64,
            distractors: 2,
            periods: (8, 4),
            train: 8000,
            val: 1000,
            test: 1000,
        }
    }
}

/// Stratified split in permille of each class (spec 02 §4.1); procedural data brings its own parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitSpec {
    pub seed: u64,
    pub val_permille: u64,
    pub test_permille: u64,
}

/// Per-channel normalisation `(pixel/scale − mean)/std`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normalise {
    Constants { mean: Vec<f64>, std: Vec<f64> },
    Auto,
    None,
}

/// Padded random crop and horizontal flip, training only (spec 02 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AugmentSpec {
    pub pad: u32,
    pub flip_p: f64,
}

/// Shape of the convolutional host (spec 01 §1.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CnnSpec {
    pub in_channels: i64,
    pub base_channels: i64,
    pub n_blocks: usize,
    /// Odd.
    pub kernel_size: i64,
    /// Blocks that are followed by a 2×2 max pool.
    pub pool_layers: usize,
    /// Height and width of the input.
    pub input_hw: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchesPerStep {
    Full,
    Count(usize),
    Shard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValBatches {
    Full,
    Count(usize),
}

/// Optimizer of a host or of its seeds, constant learning rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OptimizerConfig {
    Sgd {
        lr: f64,
        momentum: f64,
        weight_decay: f64,
    },
    #[serde(rename = "adamw")]
    AdamW {
        lr: f64,
        beta1: f64,
        beta2: f64,
        eps: f64,
        weight_decay: f64,
    },
}
