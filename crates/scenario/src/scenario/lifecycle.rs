//! Section `lifecycle`: slots and gates.

use crate::growth::SlotId;
use crate::schema::{choice, section};

section! {
    /// Section `lifecycle`: slots, quality gates and the rules of growing and pruning.
    pub struct LifecycleConfig {
        /// Slots that may grow, e.g. ["r0c0"]; r0cX lies before the pool of block X, r1cX after it. None: the task's.
        slots: Option<Vec<SlotId>>;
        /// Largest number of live and committed seeds at a time; 0: no limit. None: the task's.
        max_seeds: Option<u32>;
        /// Age, in steps, from which a seed may be pruned.
        min_prune_age: u32 = 5;
        /// Steps in holding after which a seed is pruned. None: never.
        max_holding_steps: Option<u32> = Some(10), at_least(1);
        /// Tries the gates G1, G2 and G3 at every step, without an order of the controller.
        auto_forward: bool = true;
        /// Treatment of a seed's optimizer when the seed is committed.
        on_commit: OnCommit = OnCommit::ResetMomentum;
        /// Thresholds of the quality gates.
        gates: GateConfig;
        /// Multiple of the clip norm above which a seed's gradient norm counts as exploding.
        exploding_factor: f64 = 1e9, POSITIVE;
        /// Weight of the old value in the moving average of the gradient ratio of seed and host.
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
    /// Strictness of the gates.
    #[derive(Copy, Eq)]
    pub enum GateMode {
        /// only structure and age decide; measured quality is reported
        Permissive,
        /// measured quality must reach the thresholds
        Strict,
    }
}

section! {
    /// Thresholds of the quality gates.
    #[derive(Copy)]
    pub struct GateConfig {
        /// Strictness of the gates.
        mode: GateMode = GateMode::Permissive;
        /// Steps of training before blending.
        min_training_steps: u32 = 1;
        /// Steps of blending before holding.
        min_blending_steps: u32 = 10;
        /// Smallest share of healthy gradients, 0 to 1.
        min_gradient_health: f64 = 0.0, FRACTION;
    }
}
