//! Section `lifecycle`: slots and gates.

use crate::growth::SlotId;
use crate::schema::{choice, section};

section! {
    /// Section `lifecycle`: slots, quality gates and the rules of growing and pruning.
    pub struct LifecycleConfig {
        /// Slots that may grow, e.g. ["r0c0"]; r0cX lies before the pool of block X, r1cX after it. None: the task's.
        slots: Option<Vec<SlotId>>;
        /// Most seeds, live and committed, at a time; 0: no limit. None: the task's.
        max_seeds: Option<u32>;
        /// Steps that a seed must have lived before it may be pruned.
        min_prune_age: u32 = 5;
        /// Steps after which a seed still in holding is pruned. None: never.
        max_holding_steps: Option<u32> = Some(10), at_least(1);
        /// Try the gates G1, G2 and G3 in every step without the controller asking.
        auto_forward: bool = true;
        /// Treatment of a seed's optimizer when the seed is committed.
        on_commit: OnCommit = OnCommit::ResetMomentum;
        /// Thresholds of the quality gates.
        gates: GateConfig;
        /// A seed gradient norm above this multiple of the clip norm counts as exploding.
        exploding_factor: f64 = 1e9, POSITIVE;
        /// Weight of the old value in the moving average of the seed/host gradient ratio.
        ratio_ema: f64 = 0.9, BELOW_ONE;
    }
}

choice! {
    /// Treatment of a seed's optimizer when the seed is committed.
    #[derive(Copy, Eq)]
    pub enum OnCommit {
        /// the committed seed keeps training with fresh momentum
        ResetMomentum,
        /// the committed seed keeps training as before
        Keep,
        /// the committed seed stops training
        Freeze,
    }
}

choice! {
    /// How strict the gates are.
    #[derive(Copy, Eq)]
    pub enum GateMode {
        /// structure and age decide; measured quality is reported only
        Permissive,
        /// measured quality must reach the thresholds
        Strict,
    }
}

section! {
    /// Thresholds of the quality gates.
    #[derive(Copy)]
    pub struct GateConfig {
        /// How strict the gates are.
        mode: GateMode = GateMode::Permissive;
        /// Steps of training before blending.
        min_training_steps: u32 = 1;
        /// Steps of blending before holding.
        min_blending_steps: u32 = 10;
        /// Least share of healthy gradients, 0 to 1.
        min_gradient_health: f64 = 0.0, FRACTION;
    }
}
