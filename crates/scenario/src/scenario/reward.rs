//! Section `reward`: the family and mode that pay a policy, and their coefficients.
//!
//! Penalties are written with their sign, costs and weights as magnitudes. The discount is `learner.gamma`, not a field of
//! this section.

use crate::schema::{Settings, choice, section};

choice! {
    /// `contribution(committed(( rent: 0.5 )))` or `loss(( preset: cifar10 ))`.
    pub enum RewardConfig {
        /// the contribution of the seeds, measured by ablation
        Contribution(ContributionMode),
        /// the change of the validation loss
        Loss(LossReward),
        /// a mode registered by a plugin, with its settings
        Custom {
            /// Name of the mode.
            name: String, REWARD;
            /// Settings that the mode declares.
            settings: Settings;
        },
    }
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self::Contribution(ContributionMode::Committed(CommittedReward::default()))
    }
}

choice! {
    /// Modes of the contribution family. Modes of plugins are written like its members.
    #[derive(Copy)]
    pub enum ContributionMode {
        /// at every step, the change of the accuracy with only the committed seeds, minus rent on parameters
        Committed(CommittedReward),
        /// at the end, the committed accuracy minus the cost of the committed parameters
        Sparse(SparseReward),
    }
}

impl RewardConfig {
    /// The name that reports print, e.g. `committed` or `loss`.
    pub fn mode(&self) -> &str {
        match self {
            Self::Contribution(mode) => mode.name(),
            Self::Loss(_) => self.name(),
            Self::Custom { name, .. } => name,
        }
    }
}

section! {
    /// Dense: the change of the accuracy with only the committed seeds, minus rent. The sum over an episode is its gain minus its
    /// cost.
    #[derive(Copy)]
    pub struct CommittedReward {
        /// Reward per percentage point.
        weight: f64 = 0.1, POSITIVE;
        /// Cost of seeds as large as the host that act on it during the whole episode.
        #[unit = "percentage points"]
        rent: f64 = 1.0, NOT_NEGATIVE;
    }
}

section! {
    /// Only at the end of an episode: the committed accuracy minus the cost of the committed parameters.
    #[derive(Copy)]
    pub struct SparseReward {
        /// Factor that multiplies the reward of the episode.
        sparse_reward_scale: f64 = 1.0, POSITIVE;
    }
}

choice! {
    /// Kind of task, which determines the scale of the loss.
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
    /// Dense: the change of the validation loss with only the committed seeds, minus rent.
    pub struct LossReward {
        /// Kind of task, which determines the scale of the loss.
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
