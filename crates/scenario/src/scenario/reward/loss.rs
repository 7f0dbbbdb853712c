//! The loss family.

use crate::schema::{choice, section};

choice! {
    /// Kind of task, whose scale of the loss it is.
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
    /// Dense: the change of the validation loss with committed seeds alone, less rent.
    pub struct LossReward {
        /// Kind of task, whose scale of the loss it is.
        preset: LossPreset = LossPreset::Default;
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

impl LossPreset {
    /// The preset's values.
    pub const fn scale(self) -> LossScale {
        let (typical_delta, rent_weight, baseline, target) = match self {
            Self::Default => (0.1, 0.05, 2.3, 0.3),
            Self::Cifar10 => (0.05, 0.05, 2.3, 0.3),
            Self::TinyStories => (0.15, 0.01, 10.8, 3.5),
            Self::SynthTokens => (0.05, 0.05, 4.16, 1.36),
            Self::BytesLm => (0.05, 0.05, 5.55, 1.2),
        };
        LossScale {
            typical_delta,
            rent_weight,
            baseline,
            target,
        }
    }
}
