//! Section `reward`: which family and mode pays a policy, and its coefficients.
//!
//! Penalties are written with their sign, costs and weights as magnitudes. The discount isn't a field of it: it is
//! `learner.gamma`.

use crate::schema::{Settings, choice, section};

choice! {
    /// `contribution(committed(( rent: 0.5 )))` or `loss(( preset: cifar10 ))`.
    pub enum RewardConfig {
        /// what the seeds contribute, measured by ablation
        Contribution(ContributionMode),
        /// how the validation loss changes
        Loss(LossReward),
        /// a mode that a plugin has registered, with its settings
        Custom {
            /// Name of the mode.
            name: String, REWARD;
            /// Its settings, as it declares them.
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
    /// How the contribution family pays; modes of plugins are written like members of it.
    #[derive(Copy)]
    pub enum ContributionMode {
        /// every step: the change of the accuracy with committed seeds alone, less rent on parameters
        Committed(CommittedReward),
        /// at the end: committed accuracy less the cost of committed parameters
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
    /// Dense: the change of the accuracy with committed seeds alone, less rent. What is paid over an episode is what it
    /// gained and what that cost.
    #[derive(Copy)]
    pub struct CommittedReward {
        /// Reward per percentage point.
        weight: f64 = 0.1, POSITIVE;
        /// Cost of seeds with as many parameters as the host, if they bear on it throughout the episode.
        #[unit = "percentage points"]
        rent: f64 = 1.0, NOT_NEGATIVE;
    }
}

section! {
    /// At the end of an episode alone: committed accuracy less the committed parameters' cost.
    #[derive(Copy)]
    pub struct SparseReward {
        /// Factor on the reward of the episode.
        sparse_reward_scale: f64 = 1.0, POSITIVE;
    }
}

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
