//! Section `reward`: which family and mode pays a policy, and its coefficients.
//!
//! Penalties are written with their sign, costs and weights as magnitudes. The discount is no field of it: it is
//! `learner.gamma`.

mod contribution;
mod loss;

pub use contribution::{
    BasicPlusReward, BasicReward, CommittedReward, EscrowReward, FossilAttribution, MinimalReward, ShapedReward,
    SimplifiedReward, SparseReward,
};
pub use loss::{LossPreset, LossReward, LossScale};

use serde::{Deserialize, Serialize};

use super::catalog::Entry;
use crate::schema::{Content, Described, Kind, Settings, choice, range};

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
            name: RewardName;
            /// Its settings, as it declares them.
            settings: Settings;
        },
    }
}

/// The name under which an application has registered a mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RewardName(pub String);

impl Described for RewardName {
    const KIND: Kind = range::REWARD;
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self::Contribution(ContributionMode::Committed(CommittedReward::default()))
    }
}

choice! {
    /// How the contribution family pays.
    pub enum ContributionMode {
        /// every step: the change of the accuracy with committed seeds alone, less rent on parameters
        Committed(CommittedReward),
        /// every step: contribution of committed seeds less rent, shaped towards committing
        Shaped(Box<ShapedReward>),
        /// every step: a credit that follows what growing seeds contribute and is kept by committing alone
        Escrow(Box<EscrowReward>),
        /// stage potentials and final accuracy, no rent: for diagnosis
        Simplified(SimplifiedReward),
        /// a bonus per commit, accuracy gained at the end, linear rent
        Basic(BasicReward),
        /// basic, with most of the bonus paid while the seed goes on contributing
        BasicPlus(BasicPlusReward),
        /// at the end: committed accuracy less the cost of committed parameters
        Sparse(SparseReward),
        /// sparse, and a penalty for pruning early
        Minimal(MinimalReward),
    }
}

impl RewardConfig {
    /// What the scenario charges for as many parameters as the host has, in percentage points of an episode; `None` of rewards whose
    /// rent is no multiple of the size.
    pub const fn price(&self) -> Option<f64> {
        match self {
            Self::Contribution(ContributionMode::Committed(committed)) => Some(committed.rent),
            Self::Contribution(_) | Self::Loss(_) | Self::Custom { .. } => None,
        }
    }

    /// The name that reports print, e.g. `shaped` or `loss`.
    pub const fn mode(&self) -> &'static str {
        match self {
            Self::Contribution(mode) => mode.name(),
            Self::Loss(_) | Self::Custom { .. } => self.name(),
        }
    }

    /// Whether committed seeds must stay players of the counterfactual pass.
    pub const fn measures_fossils(&self) -> bool {
        match self {
            Self::Contribution(ContributionMode::Shaped(shaped)) => {
                matches!(shaped.fossil_attribution, FossilAttribution::Live)
            }
            Self::Contribution(ContributionMode::BasicPlus(_)) => true,
            _ => false,
        }
    }
}

/// Every family and mode, as a scenario writes it.
pub fn reward_forms() -> Vec<Entry> {
    forms_of(&RewardConfig::KIND)
}

fn forms_of(kind: &Kind) -> Vec<Entry> {
    let Kind::Choice(variants) = kind else {
        return Vec::new();
    };
    variants
        .iter()
        .flat_map(|variant| {
            let inner = match &variant.content {
                Content::Items([item]) => forms_of(&item.kind),
                _ => Vec::new(),
            };
            let takes = match &variant.content {
                Content::Items([item]) if matches!(item.kind, Kind::Text(_)) => "\"..\"",
                _ => "",
            };
            let own = inner
                .is_empty()
                .then(|| Entry::new(format!("{}({takes})", variant.name), variant.doc));
            let wrap = |entry: Entry| Entry::new(format!("{}({})", variant.name, entry.name), entry.summary);
            own.into_iter().chain(inner.into_iter().map(wrap)).collect::<Vec<_>>()
        })
        .collect()
}
