//! Section `reward`: which family and mode pays a policy, and its coefficients (spec 05 §1, §5, §13).
//!
//! Penalties are written with their sign, costs and weights as magnitudes. The discount is no field of it: there is one
//! per policy group, `learner.gamma`.

use serde::{Deserialize, Serialize};

/// `contribution(shaped(( rent_weight: 0.5 )))` or `loss(( preset: cifar10 ))`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardConfig {
    Contribution(ContributionMode),
    Loss(LossReward),
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self::Contribution(ContributionMode::Shaped(Box::default()))
    }
}

/// How the contribution family pays (spec 05 §1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContributionMode {
    Shaped(Box<ShapedReward>),
    Simplified(SimplifiedReward),
    Basic(BasicReward),
    Sparse(SparseReward),
}

impl RewardConfig {
    /// The name that reports print, e.g. `shaped` or `loss`.
    pub const fn mode(&self) -> &'static str {
        match self {
            Self::Contribution(ContributionMode::Shaped(_)) => "shaped",
            Self::Contribution(ContributionMode::Simplified(_)) => "simplified",
            Self::Contribution(ContributionMode::Basic(_)) => "basic",
            Self::Contribution(ContributionMode::Sparse(_)) => "sparse",
            Self::Loss(_) => "loss",
        }
    }

    pub const fn family(&self) -> &'static str {
        match self {
            Self::Contribution(_) => "contribution",
            Self::Loss(_) => "loss",
        }
    }

    /// Whether committed seeds must stay players of the counterfactual pass.
    pub const fn measures_fossils(&self) -> bool {
        match self {
            Self::Contribution(ContributionMode::Shaped(shaped)) => {
                matches!(shaped.fossil_attribution, FossilAttribution::Live)
            }
            _ => false,
        }
    }
}

/// How progress and contribution become one number (spec 05 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttributionFormula {
    Harmonic,
    Minimum,
}

/// What a committed seed goes on earning (spec 05 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FossilAttribution {
    /// The least of its last three attributions.
    Frozen,
    /// Its contribution as measured in every step.
    Live,
    /// Nothing.
    None,
}

/// A record of coefficients together with its defaults.
macro_rules! coefficients {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type),* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default),* }
            }
        }
    };
}

coefficients! {
    /// Dense: what each seed contributes, less rent, shaped towards committing (spec 05 §3-4).
    ShapedReward {
        /// Reward per percentage point attributed.
        contribution_weight: f64 = 1.0,
        attribution_formula: AttributionFormula = AttributionFormula::Harmonic,
        /// Bound of a seed's attribution per step; 0 = none.
        attribution_clip: f64 = 10.0,
        attribution_sigmoid_steepness: f64 = 3.0,
        fossil_attribution: FossilAttribution = FossilAttribution::Frozen,
        /// Steps for which a measured contribution is reused.
        max_staleness: u32 = 0,
        /// Percentage points from which a commit counts as contributing.
        min_fossilize_contribution: f64 = 1.0,
        /// Steps of holding from which a commit earns its bonus in full.
        min_holding_epochs: u32 = 5,

        germination_warmup_epochs: u32 = 10,
        germination_discount_floor: f64 = 0.4,
        disable_timing_discount: bool = false,

        improvement_safe_threshold: f64 = 0.1,
        hacking_ratio_threshold: f64 = 5.0,
        ransomware_contribution: f64 = 0.1,
        ransomware_improvement: f64 = -0.2,
        disable_anti_gaming: bool = false,

        pbrs_weight: f64 = 0.3,
        epoch_progress_bonus: f64 = 0.3,
        progress_gap_fraction: f64 = 0.9,
        disable_pbrs: bool = false,

        rent_weight: f64 = 0.5,
        max_rent: f64 = 1.5,
        rent_host_params_floor: u64 = 200,
        base_slot_rent_ratio: f64 = 0.0039,
        seed_occupancy_cost: f64 = 0.01,
        free_slots: u32 = 1,
        fossilized_maintenance_cost: f64 = 0.002,

        alpha_shock_coef: f64 = 0.1958,
        alpha_shock_cap: f64 = 1.0,

        germinate_intervention: f64 = -0.15,
        fossilize_intervention: f64 = -0.01,
        prune_intervention: f64 = -0.005,
        set_alpha_target_intervention: f64 = -0.005,
        advance_from_training_penalty: f64 = -0.1,
        penalize_rejected: bool = false,
        rejected_fossilize_penalty: f64 = -1.0,
        rejected_prune_penalty: f64 = -1.0,
        rejected_germinate_penalty: f64 = -0.3,

        fossilize_base_bonus: f64 = 0.5,
        fossilize_contribution_scale: f64 = 0.1,
        fossilize_noncontributing_penalty: f64 = -0.2,
        fossilize_terminal_scale: f64 = 3.0,
        fossilize_quality_ceiling: f64 = 3.0,

        min_prune_age: u32 = 5,
        prune_hurting_bonus: f64 = 0.15,
        prune_acceptable_bonus: f64 = 0.1,
        prune_good_seed_penalty: f64 = -0.3,
        prune_hurting_threshold: f64 = -0.5,
        min_prune_bonus_age: u32 = 3,
        early_prune_threshold: u32 = 5,
        early_prune_penalty: f64 = -0.1,
        auto_prune_penalty: f64 = -0.2,

        terminal_acc_weight: f64 = 0.05,
        disable_terminal_reward: bool = false,

        synergy_weight: f64 = 0.1,
        synergy_gain: f64 = 0.5,
        hindsight_weight: f64 = 0.1,
        hindsight_gain: f64 = 0.1,
        hindsight_cap: f64 = 0.2,
    }
}

coefficients! {
    /// Potentials, a flat cost of acting and the final accuracy: for diagnosis, it charges no rent (spec 05 §4).
    SimplifiedReward {
        /// Cost of every operation but `WAIT`.
        simplified_action_cost: f64 = 0.01,
        /// Reward of 100 % final accuracy.
        simplified_accuracy_weight: f64 = 3.0,
        /// Reward per contributing commit at the end.
        simplified_fossil_bonus: f64 = 2.0,
        max_staleness: u32 = 0,
        min_fossilize_contribution: f64 = 1.0,
        pbrs_weight: f64 = 0.3,
        epoch_progress_bonus: f64 = 0.3,
        progress_gap_fraction: f64 = 0.9,
        disable_pbrs: bool = false,
        disable_terminal_reward: bool = false,
    }
}

coefficients! {
    /// A bonus per commit, the accuracy gained over the episode, linear rent (spec 05 §4).
    BasicReward {
        /// Reward of 100 percentage points gained over the episode.
        basic_acc_weight: f64 = 5.0,
        basic_base_bonus: f64 = 0.3,
        basic_contribution_scale: f64 = 0.5,
        basic_invalid_penalty: f64 = -0.5,
        basic_noncontributing_penalty: f64 = -0.2,
        attribution_formula: AttributionFormula = AttributionFormula::Harmonic,
        max_staleness: u32 = 0,
        min_fossilize_contribution: f64 = 1.0,
        min_holding_epochs: u32 = 5,
        pbrs_weight: f64 = 0.3,
        epoch_progress_bonus: f64 = 0.3,
        progress_gap_fraction: f64 = 0.9,
        disable_pbrs: bool = false,
        base_slot_rent_ratio: f64 = 0.0039,
        param_penalty_weight: f64 = 0.1,
        /// Parameters that cost `param_penalty_weight` per step.
        param_budget: u64 = 500_000,
        auto_prune_penalty: f64 = -0.2,
    }
}

coefficients! {
    /// At the end of an episode alone: committed accuracy less the committed parameters' cost (spec 05 §4).
    SparseReward {
        sparse_reward_scale: f64 = 1.0,
        param_penalty_weight: f64 = 0.1,
        /// Committed parameters that cost `param_penalty_weight`.
        param_budget: u64 = 500_000,
    }
}

/// Constants of a kind of task (spec 05 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossPreset {
    Default,
    Cifar10,
    TinyStories,
}

coefficients! {
    /// Dense: the change of the validation loss, less rent. What is `None` comes from the preset.
    LossReward {
        preset: LossPreset = LossPreset::Default,
        loss_delta_weight: f64 = 5.0,
        max_loss_delta: f64 = 5.0,
        regression_penalty_scale: f64 = 0.5,
        /// Nats.
        typical_loss_delta_std: Option<f64> = None,
        compute_rent_weight: Option<f64> = None,
        max_rent_penalty: f64 = 5.0,
        grace_epochs: u32 = 3,
        stage_potential_weight: f64 = 0.1,
        /// Nats.
        baseline_loss: Option<f64> = None,
        /// Nats.
        target_loss: Option<f64> = None,
        terminal_loss_weight: f64 = 1.0,
        auto_prune_penalty: f64 = -0.2,
    }
}

/// The coefficients of the loss family that depend on the task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossScale {
    /// Nats.
    pub typical_delta: f64,
    pub rent_weight: f64,
    /// Nats.
    pub baseline: f64,
    /// Nats.
    pub target: f64,
}

impl LossReward {
    /// The preset's values, single ones replaced.
    pub fn scale(&self) -> LossScale {
        let (typical_delta, rent_weight, baseline, target) = match self.preset {
            LossPreset::Default => (0.1, 0.05, 2.3, 0.3),
            LossPreset::Cifar10 => (0.05, 0.05, 2.3, 0.3),
            LossPreset::TinyStories => (0.15, 0.01, 10.8, 3.5),
        };
        LossScale {
            typical_delta: self.typical_loss_delta_std.unwrap_or(typical_delta),
            rent_weight: self.compute_rent_weight.unwrap_or(rent_weight),
            baseline: self.baseline_loss.unwrap_or(baseline),
            target: self.target_loss.unwrap_or(target),
        }
    }
}
