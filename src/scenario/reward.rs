//! Section `reward`: which family and mode pays a policy, and its coefficients.
//!
//! Penalties are written with their sign, costs and weights as magnitudes. The discount is no field of it: it is
//! `learner.gamma`.

use super::catalog::Entry;
use crate::schema::{Content, Described, Kind, choice, section};

choice! {
    /// `contribution(shaped(( rent_weight: 0.5 )))` or `loss(( preset: cifar10 ))`.
    pub enum RewardConfig {
        /// what the seeds contribute, measured by ablation
        Contribution(ContributionMode),
        /// how the validation loss changes
        Loss(LossReward),
    }
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self::Contribution(ContributionMode::Shaped(Box::default()))
    }
}

choice! {
    /// How the contribution family pays.
    pub enum ContributionMode {
        /// every step: contribution less rent, shaped towards committing
        Shaped(Box<ShapedReward>),
        /// stage potentials and final accuracy, no rent: for diagnosis
        Simplified(SimplifiedReward),
        /// a bonus per commit, accuracy gained at the end, linear rent
        Basic(BasicReward),
        /// at the end: committed accuracy less the cost of committed parameters
        Sparse(SparseReward),
    }
}

/// Modes and families that a user may know from the literature and this version lacks.
pub(super) const NOT_IN_THIS_VERSION: [&str; 4] = ["escrow", "basic_plus", "minimal", "custom"];

impl RewardConfig {
    /// The name that reports print, e.g. `shaped` or `loss`.
    pub const fn mode(&self) -> &'static str {
        match self {
            Self::Contribution(mode) => mode.name(),
            Self::Loss(_) => self.name(),
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
            let own = inner
                .is_empty()
                .then(|| Entry::new(format!("{}()", variant.name), variant.doc));
            let wrap = |entry: Entry| Entry::new(format!("{}({})", variant.name, entry.name), entry.summary);
            own.into_iter().chain(inner.into_iter().map(wrap)).collect::<Vec<_>>()
        })
        .collect()
}

choice! {
    /// What a seed is credited with whose contribution exceeds the env's progress.
    #[derive(Copy, Eq)]
    pub enum AttributionFormula {
        /// harmonic mean of progress and contribution
        Harmonic,
        /// the smaller of progress and contribution
        Minimum,
    }
}

choice! {
    /// What a committed seed goes on earning.
    #[derive(Copy, Eq)]
    pub enum FossilAttribution {
        /// the least of its last three attributions, every step
        Frozen,
        /// its contribution as measured, every step
        Live,
        /// nothing
        None,
    }
}

section! {
    /// Dense: what each seed contributes, less rent, shaped towards committing.
    pub struct ShapedReward {
        /// Reward per percentage point attributed to a seed.
        contribution_weight: f64 = 1.0, NOT_NEGATIVE;
        /// What a seed is credited with whose contribution exceeds the env's progress.
        attribution_formula: AttributionFormula = AttributionFormula::Harmonic;
        /// Bound of a seed's attribution per step; 0: none.
        attribution_clip: f64 = 10.0, NOT_NEGATIVE;
        /// How fast credit fades when the seeds together do harm.
        attribution_sigmoid_steepness: f64 = 3.0, NOT_NEGATIVE;
        /// What a committed seed goes on earning.
        fossil_attribution: FossilAttribution = FossilAttribution::Frozen;
        /// Steps for which a measured contribution is reused.
        max_staleness: u32;
        /// Contribution from which a commit counts as contributing.
        #[unit = "percentage points"]
        min_fossilize_contribution: f64 = 1.0;
        /// Steps of holding from which a commit earns its bonus in full.
        min_holding_epochs: u32 = 5;
        /// First step at which germinating is credited in full.
        germination_warmup_epochs: u32 = 10;
        /// Share of the credit for a seed germinated at step 0.
        germination_discount_floor: f64 = 0.4, FRACTION;
        /// Credit early seeds in full.
        disable_timing_discount: bool;
        /// Joint improvement below which large contributions are fined at once.
        #[unit = "percentage points"]
        improvement_safe_threshold: f64 = 0.1, NOT_NEGATIVE;
        /// Contribution per joint improvement above which a seed is fined.
        hacking_ratio_threshold: f64 = 5.0, POSITIVE;
        /// Contribution above which a seed of a harmful coalition counts as ransomware.
        #[unit = "percentage points"]
        ransomware_contribution: f64 = 0.1, NOT_NEGATIVE;
        /// Joint improvement below which a coalition counts as harmful.
        #[unit = "percentage points"]
        ransomware_improvement: f64 = -0.2, NOT_POSITIVE;
        /// No ratio penalty and no alpha shock.
        disable_anti_gaming: bool;
        /// Weight of the potential-based shaping.
        pbrs_weight: f64 = 0.3, NOT_NEGATIVE;
        /// Potential gained per step in a stage.
        epoch_progress_bonus: f64 = 0.3, NOT_NEGATIVE;
        /// Most of the gap to the next stage's potential that waiting can gain.
        progress_gap_fraction: f64 = 0.9, BELOW_ONE;
        /// No potential-based shaping.
        disable_pbrs: bool;
        /// Weight of the logarithmic rent on seed parameters.
        rent_weight: f64 = 0.5, NOT_NEGATIVE;
        /// Most rent per step.
        max_rent: f64 = 1.5, NOT_NEGATIVE;
        /// Host parameters that rent is reckoned by at least.
        rent_host_params_floor: u64 = 200, integer(1, u64::MAX as i128);
        /// Rent of an occupied slot as a share of the host's parameters.
        base_slot_rent_ratio: f64 = 0.0039, NOT_NEGATIVE;
        /// Cost per step of each seed beyond the free ones.
        seed_occupancy_cost: f64 = 0.01, NOT_NEGATIVE;
        /// Seeds that cost no occupancy.
        free_slots: u32 = 1;
        /// Cost per step of each committed seed.
        fossilized_maintenance_cost: f64 = 0.002, NOT_NEGATIVE;
        /// Cost of moving alpha: per squared change and relative size of the seed.
        alpha_shock_coef: f64 = 0.1958, NOT_NEGATIVE;
        /// Most alpha shock per step.
        alpha_shock_cap: f64 = 1.0, NOT_NEGATIVE;
        /// Reward of germinating.
        germinate_intervention: f64 = -0.15, NOT_POSITIVE;
        /// Reward of the act of committing.
        fossilize_intervention: f64 = -0.01, NOT_POSITIVE;
        /// Reward of the act of pruning.
        prune_intervention: f64 = -0.005, NOT_POSITIVE;
        /// Reward of ordering a ramp.
        set_alpha_target_intervention: f64 = -0.005, NOT_POSITIVE;
        /// Reward of moving a training seed on.
        advance_from_training_penalty: f64 = -0.1, NOT_POSITIVE;
        /// Fine commands that did not take effect.
        penalize_rejected: bool;
        /// Reward of a refused commit, if fined.
        rejected_fossilize_penalty: f64 = -1.0, NOT_POSITIVE;
        /// Reward of a refused prune, if fined.
        rejected_prune_penalty: f64 = -1.0, NOT_POSITIVE;
        /// Reward of a refused germination, if fined.
        rejected_germinate_penalty: f64 = -0.3, NOT_POSITIVE;
        /// Reward of committing a contributing seed.
        fossilize_base_bonus: f64 = 0.5, NOT_NEGATIVE;
        /// Further reward per percentage point that it contributes.
        fossilize_contribution_scale: f64 = 0.1, NOT_NEGATIVE;
        /// Reward of committing a seed that contributes too little.
        fossilize_noncontributing_penalty: f64 = -0.2, NOT_POSITIVE;
        /// Scale of the completion bonus.
        fossilize_terminal_scale: f64 = 3.0, NOT_NEGATIVE;
        /// Where the completion bonus saturates.
        fossilize_quality_ceiling: f64 = 3.0, POSITIVE;
        /// Age below which every missing step is fined when a seed is pruned.
        min_prune_age: u32 = 5;
        /// Reward of pruning a seed that hurts.
        prune_hurting_bonus: f64 = 0.15, NOT_NEGATIVE;
        /// Reward of pruning a seed that hurts a little.
        prune_acceptable_bonus: f64 = 0.1, NOT_NEGATIVE;
        /// Reward of pruning a seed that helps; at most three times as bad for a very good one.
        prune_good_seed_penalty: f64 = -0.3, NOT_POSITIVE;
        /// Contribution below which a seed hurts.
        #[unit = "percentage points"]
        prune_hurting_threshold: f64 = -0.5, NOT_POSITIVE;
        /// Age below which pruning a hurting seed earns nothing.
        min_prune_bonus_age: u32 = 3;
        /// Age below which pruning a seed that was never measured is fined.
        early_prune_threshold: u32 = 5;
        /// Reward of pruning too early.
        early_prune_penalty: f64 = -0.1, NOT_POSITIVE;
        /// Reward per seed that the engine had to remove.
        auto_prune_penalty: f64 = -0.2, NOT_POSITIVE;
        /// Reward per percent of final accuracy.
        terminal_acc_weight: f64 = 0.05, NOT_NEGATIVE;
        /// No completion bonus and no reward of the final accuracy.
        disable_terminal_reward: bool;
        /// Most reward per step of seeds that help each other.
        synergy_weight: f64 = 0.1, NOT_NEGATIVE;
        /// How fast that reward saturates, per percentage point.
        synergy_gain: f64 = 0.5, NOT_NEGATIVE;
        /// Most credit of one seed for having helped a committed one; 0: none.
        hindsight_weight: f64 = 0.1, NOT_NEGATIVE;
        /// How fast that credit saturates.
        hindsight_gain: f64 = 0.1, NOT_NEGATIVE;
        /// Most such credit per commit.
        hindsight_cap: f64 = 0.2, NOT_NEGATIVE;
    }
}

section! {
    /// Potentials, a flat cost of acting and the final accuracy: for diagnosis, it charges no rent.
    pub struct SimplifiedReward {
        /// Cost of every operation but WAIT.
        simplified_action_cost: f64 = 0.01, NOT_NEGATIVE;
        /// Reward of 100 % final accuracy.
        simplified_accuracy_weight: f64 = 3.0, NOT_NEGATIVE;
        /// Reward at the end per contributing commit.
        simplified_fossil_bonus: f64 = 2.0, NOT_NEGATIVE;
        /// Steps for which a measured contribution is reused.
        max_staleness: u32;
        /// Contribution from which a commit counts as contributing.
        #[unit = "percentage points"]
        min_fossilize_contribution: f64 = 1.0;
        /// Weight of the potential-based shaping.
        pbrs_weight: f64 = 0.3, NOT_NEGATIVE;
        /// Potential gained per step in a stage.
        epoch_progress_bonus: f64 = 0.3, NOT_NEGATIVE;
        /// Most of the gap to the next stage's potential that waiting can gain.
        progress_gap_fraction: f64 = 0.9, BELOW_ONE;
        /// No potential-based shaping.
        disable_pbrs: bool;
        /// No reward of the final accuracy and of commits.
        disable_terminal_reward: bool;
    }
}

section! {
    /// A bonus per commit, the accuracy gained over the episode, linear rent.
    pub struct BasicReward {
        /// Reward of 100 percentage points gained over the episode.
        basic_acc_weight: f64 = 5.0, NOT_NEGATIVE;
        /// Reward of committing a contributing seed.
        basic_base_bonus: f64 = 0.3, NOT_NEGATIVE;
        /// Further reward per percentage point that it is credited with.
        basic_contribution_scale: f64 = 0.5, NOT_NEGATIVE;
        /// Reward of committing a seed while the seeds together do harm.
        basic_invalid_penalty: f64 = -0.5, NOT_POSITIVE;
        /// Reward of committing a seed that contributes too little.
        basic_noncontributing_penalty: f64 = -0.2, NOT_POSITIVE;
        /// What a seed is credited with whose contribution exceeds the joint improvement.
        attribution_formula: AttributionFormula = AttributionFormula::Harmonic;
        /// Steps for which a measured contribution is reused.
        max_staleness: u32;
        /// Contribution from which a commit counts as contributing.
        #[unit = "percentage points"]
        min_fossilize_contribution: f64 = 1.0;
        /// Steps of holding from which a commit earns its bonus in full.
        min_holding_epochs: u32 = 5;
        /// Weight of the potential-based shaping.
        pbrs_weight: f64 = 0.3, NOT_NEGATIVE;
        /// Potential gained per step in a stage.
        epoch_progress_bonus: f64 = 0.3, NOT_NEGATIVE;
        /// Most of the gap to the next stage's potential that waiting can gain.
        progress_gap_fraction: f64 = 0.9, BELOW_ONE;
        /// No potential-based shaping.
        disable_pbrs: bool;
        /// Rent of an occupied slot as a share of the host's parameters.
        base_slot_rent_ratio: f64 = 0.0039, NOT_NEGATIVE;
        /// Cost of a full parameter budget.
        param_penalty_weight: f64 = 0.1, NOT_NEGATIVE;
        /// Parameters that make up the budget.
        param_budget: u64 = 500_000, integer(1, u64::MAX as i128);
        /// Reward per seed that the engine had to remove.
        auto_prune_penalty: f64 = -0.2, NOT_POSITIVE;
    }
}

section! {
    /// At the end of an episode alone: committed accuracy less the committed parameters' cost.
    pub struct SparseReward {
        /// Factor on the reward of the episode.
        sparse_reward_scale: f64 = 1.0, POSITIVE;
        /// Cost of a full parameter budget.
        param_penalty_weight: f64 = 0.1, NOT_NEGATIVE;
        /// Parameters that make up the budget.
        param_budget: u64 = 500_000, integer(1, u64::MAX as i128);
    }
}

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
    }
}

section! {
    /// Dense: the change of the validation loss, less rent. What is `None` comes from the preset.
    pub struct LossReward {
        /// Kind of task; fields that are None take its values.
        preset: LossPreset = LossPreset::Default;
        /// Reward per typical change of the loss.
        loss_delta_weight: f64 = 5.0, NOT_NEGATIVE;
        /// Most typical changes that count in one step.
        max_loss_delta: f64 = 5.0, POSITIVE;
        /// Factor on the penalty of a rising loss.
        regression_penalty_scale: f64 = 0.5, NOT_NEGATIVE;
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
        };
        LossScale {
            typical_delta: self.typical_loss_delta_std.unwrap_or(typical_delta),
            rent_weight: self.compute_rent_weight.unwrap_or(rent_weight),
            baseline: self.baseline_loss.unwrap_or(baseline),
            target: self.target_loss.unwrap_or(target),
        }
    }
}
