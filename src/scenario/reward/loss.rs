//! The loss family.

use crate::schema::{choice, section};

choice! {
    /// Kind of task; fields that are None take its values.
    #[derive(Copy, Eq)]
    pub enum LossPreset {
        /// no particular task
        Default,
        /// ten classes of images
        Cifar10,
        /// a language model
        TinyStories,
        /// a language model of the task synth_tokens
        SynthTokens,
        /// a language model of bytes
        BytesLm,
    }
}

section! {
    /// Dense: the change of the validation loss with committed seeds alone, less rent. What is `None` comes from the preset.
    pub struct LossReward {
        /// Kind of task; fields that are None take its values.
        preset: LossPreset = LossPreset::Default;
        /// Reward per typical change of the loss.
        loss_delta_weight: f64 = 5.0, NOT_NEGATIVE;
        /// Most typical changes that count in one step; what is beyond counts in the next ones.
        max_loss_delta: f64 = 5.0, POSITIVE;
        /// Factor on the penalty of a rising loss. Below 1, a loss that rises and falls again is paid for.
        regression_penalty_scale: f64 = 1.0, NOT_NEGATIVE;
        /// A typical change of the loss between steps. None: the preset's.
        #[unit = "nats"]
        typical_loss_delta_std: Option<f64>, POSITIVE;
        /// Weight of the logarithmic rent on seed parameters. None: the preset's.
        compute_rent_weight: Option<f64>, NOT_NEGATIVE;
        /// Most rent per step.
        max_rent_penalty: f64 = 5.0, NOT_NEGATIVE;
        /// Age from which a seed pays rent.
        grace_epochs: u32 = 3;
        /// Weight of the potential-based shaping.
        stage_potential_weight: f64 = 0.1, NOT_NEGATIVE;
        /// Loss of guessing; must exceed target_loss. None: the preset's.
        #[unit = "nats"]
        baseline_loss: Option<f64>, POSITIVE;
        /// Loss of a solved task. None: the preset's.
        #[unit = "nats"]
        target_loss: Option<f64>, NOT_NEGATIVE;
        /// Reward at the end of reaching the target loss.
        terminal_loss_weight: f64 = 1.0, NOT_NEGATIVE;
        /// Reward per seed that the engine had to remove.
        auto_prune_penalty: f64 = -0.2, NOT_POSITIVE;
    }
}

/// The coefficients of the loss family that depend on the task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossScale {
    /// A typical change of the loss between steps, nats.
    pub typical_delta: f64,
    /// Weight of the logarithmic rent on seed parameters.
    pub rent_weight: f64,
    /// Loss of guessing, nats.
    pub baseline: f64,
    /// Loss of a solved task, nats.
    pub target: f64,
}

impl LossReward {
    /// The preset's values, single ones replaced.
    pub fn scale(&self) -> LossScale {
        let (typical_delta, rent_weight, baseline, target) = match self.preset {
            LossPreset::Default => (0.1, 0.05, 2.3, 0.3),
            LossPreset::Cifar10 => (0.05, 0.05, 2.3, 0.3),
            LossPreset::TinyStories => (0.15, 0.01, 10.8, 3.5),
            LossPreset::SynthTokens => (0.05, 0.05, 4.16, 1.36),
            LossPreset::BytesLm => (0.05, 0.05, 5.55, 1.2),
        };
        LossScale {
            typical_delta: self.typical_loss_delta_std.unwrap_or(typical_delta),
            rent_weight: self.compute_rent_weight.unwrap_or(rent_weight),
            baseline: self.baseline_loss.unwrap_or(baseline),
            target: self.target_loss.unwrap_or(target),
        }
    }
}
