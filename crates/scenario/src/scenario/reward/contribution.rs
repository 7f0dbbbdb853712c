//! The contribution family.

use crate::schema::{choice, section};

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
        /// What a committed seed goes on earning.
        fossil_attribution: FossilAttribution = FossilAttribution::Live;
        /// Steps for which a measured contribution is reused.
        max_staleness: u32;
        /// No ratio penalty and no alpha shock.
        disable_anti_gaming: bool;
        /// No potential-based shaping.
        disable_pbrs: bool;
        /// Weight of the logarithmic rent on seed parameters.
        rent_weight: f64 = 0.5, NOT_NEGATIVE;
        /// Most rent per step.
        max_rent: f64 = 1.5, NOT_NEGATIVE;
        /// Reward of pruning a seed that hurts.
        prune_hurting_bonus: f64 = 0.15, NOT_NEGATIVE;
        /// No completion bonus and no reward of the final accuracy.
        disable_terminal_reward: bool;
    }
}

section! {
    /// As shaped, but what a growing seed contributes is a credit: it grows and falls with the contribution, and is kept by
    /// committing alone.
    pub struct EscrowReward {
        /// All other terms.
        shaped: ShapedReward;
    }
}

section! {
    /// Potentials, a flat cost of acting and the final accuracy with committed seeds alone: for diagnosis, it charges no
    /// rent.
    pub struct SimplifiedReward {
        /// Steps for which a measured contribution is reused.
        max_staleness: u32;
    }
}

section! {
    /// A bonus per commit, the accuracy gained over the episode with committed seeds alone, linear rent.
    pub struct BasicReward {
        /// Reward of 100 percentage points gained over the episode.
        basic_acc_weight: f64 = 5.0, NOT_NEGATIVE;
        /// Steps for which a measured contribution is reused.
        max_staleness: u32;
        /// Parameters that make up the budget.
        param_budget: u64 = 500_000, integer(1, u64::MAX as i128);
    }
}

section! {
    /// As basic, but part of a commit's bonus is paid in instalments for as long as the seed contributes what it did.
    pub struct BasicPlusReward {
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
        /// Parameters that make up the budget.
        param_budget: u64 = 500_000, integer(1, u64::MAX as i128);
    }
}

section! {
    /// As sparse, and a penalty for pruning early.
    #[derive(Copy)]
    pub struct MinimalReward {
        /// All other terms.
        sparse: SparseReward;
    }
}
