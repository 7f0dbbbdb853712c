//! Section `reward`: which family and mode pays a policy, and its coefficients.
//!
//! Penalties are written with their sign, costs and weights as magnitudes. The discount is no field of it: it is
//! `learner.gamma`.

mod contribution;
mod loss;

pub use contribution::{CommittedReward, SparseReward};
pub use loss::{LossPreset, LossReward, LossScale};

use crate::schema::{Settings, choice};

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
