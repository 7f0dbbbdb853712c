//! What may be set of the shaped reward, whose terms the escrow shares.

use crate::prelude::*;

choice! {
    /// What a seed earns after its commit.
    #[derive(Copy, Eq)]
    pub enum CommittedAttribution {
        /// the least of its last three attributions, every step
        Frozen,
        /// its share of what the committed seeds add together as measured, every step
        Live,
        /// nothing
        None,
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
        /// What a seed earns after its commit.
        committed_attribution: CommittedAttribution = CommittedAttribution::Live;
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
