//! The contribution family.

use crate::schema::{choice, section};

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
        /// its share of what the committed seeds add together as measured, every step
        Live,
        /// nothing
        None,
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
        /// Share of what growing seeds add that is lent to them until they are committed or gone; it is paid back, so
        /// that it guides and pays nothing.
        loan: f64 = 1.0, FRACTION;
    }
}

section! {
    /// Dense: what committed seeds contribute, less rent, shaped towards committing.
    pub struct ShapedReward {
        /// Reward per percentage point attributed to a seed.
        contribution_weight: f64 = 0.1, NOT_NEGATIVE;
        /// Steps from its first amplitude for which a seed is paid before it is committed. None: without end, which pays
        /// for holding it.
        growing_pay_steps: Option<u32> = Some(0), at_least(0);
        /// What a seed is credited with whose contribution exceeds the env's progress.
        attribution_formula: AttributionFormula = AttributionFormula::Harmonic;
        /// Bound of a seed's attribution per step; 0: none.
        attribution_clip: f64 = 10.0, NOT_NEGATIVE;
        /// How fast credit fades when the seeds together do harm.
        attribution_sigmoid_steepness: f64 = 3.0, NOT_NEGATIVE;
        /// What a committed seed goes on earning.
        fossil_attribution: FossilAttribution = FossilAttribution::Live;
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
        disable_timing_discount: bool = true;
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
        /// Reward per seed that the engine had to remove, beside what pruning it costs.
        auto_prune_penalty: f64 = -0.2, NOT_POSITIVE;
        /// Reward per percent of final accuracy with the committed seeds alone.
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
    /// As shaped, but what a growing seed contributes is a credit: it grows and falls with the contribution, and is kept by
    /// committing alone.
    pub struct EscrowReward {
        /// Steps whose least accuracy counts as progress: a spike earns nothing.
        stable_window: usize = 3, integer(1, 100);
        /// Most that a credit changes in a step; 0: no limit.
        delta_clip: f64 = 2.0, NOT_NEGATIVE;
        /// Discount credits as the learner does, so that one that is not kept is worth exactly nothing.
        carry: bool = true;
        /// All other terms.
        shaped: ShapedReward;
    }
}

section! {
    /// Potentials, a flat cost of acting and the final accuracy with committed seeds alone: for diagnosis, it charges no
    /// rent.
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
    /// A bonus per commit, the accuracy gained over the episode with committed seeds alone, linear rent.
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
    /// As basic, but part of a commit's bonus is paid in instalments for as long as the seed contributes what it did.
    pub struct BasicPlusReward {
        /// Share of the bonus that is paid in instalments.
        drip_fraction: f64 = 0.7, SHARE;
        /// Most that one seed is paid in a step.
        max_drip_per_epoch: f64 = 0.1, POSITIVE;
        /// Least number of instalments.
        min_drip_epochs: u32 = 5, integer(1, u32::MAX as i128);
        /// Share of an instalment that a seed is charged at most when it does harm.
        negative_drip_ratio: f64 = 0.5, FRACTION;
        /// All other terms.
        basic: BasicReward;
    }
}

section! {
    /// At the end of an episode alone: committed accuracy less the committed parameters' cost.
    #[derive(Copy)]
    pub struct SparseReward {
        /// Factor on the reward of the episode.
        sparse_reward_scale: f64 = 1.0, POSITIVE;
        /// Cost of a full parameter budget.
        param_penalty_weight: f64 = 0.1, NOT_NEGATIVE;
        /// Parameters that make up the budget.
        param_budget: u64 = 500_000, integer(1, u64::MAX as i128);
    }
}

section! {
    /// As sparse, and a penalty for pruning early.
    #[derive(Copy)]
    pub struct MinimalReward {
        /// Age below which a prune is fined; without effect if `lifecycle.min_prune_age` forbids such prunes.
        early_prune_threshold: u32 = 5;
        /// Reward of pruning too early.
        early_prune_penalty: f64 = -0.1, NOT_POSITIVE;
        /// All other terms.
        sparse: SparseReward;
    }
}
