//! Section `attribution`: how each seed's contribution is measured.

use crate::schema::{choice, section};

choice! {
    /// Which on/off configurations of the live seeds are evaluated.
    #[derive(Copy, Eq)]
    pub enum AttributionStrategy {
        /// all configurations for few seeds, selected ones for many
        Auto,
        /// each seed off once
        AblationOnly,
        /// all configurations for few seeds, those of sampled orders of joining for many: Shapley values every time
        Permutations,
        /// none: contributions stay unknown
        Off,
    }
}

choice! {
    /// When contributions are measured.
    #[derive(Copy, Eq)]
    pub enum Cadence {
        /// at every step
        EveryStep,
        /// at every k-th step
        EveryK(u32, at_least(1)),
        /// where the stage or the amplitude of a seed has changed, at every step with a held seed, and at the last one
        OnChange,
        /// at the last step of an episode
        Terminal,
    }
}

/// Most seeds whose 2^n configurations may all be evaluated.
pub const FULL_FACTORIAL_LIMIT: usize = 12;

section! {
    /// Section `attribution`: how each seed's contribution is measured.
    #[derive(Copy)]
    pub struct AttributionConfig {
        /// Which on/off configurations of the live seeds are evaluated.
        strategy: AttributionStrategy = AttributionStrategy::Auto;
        /// When contributions are measured.
        cadence: Cadence = Cadence::EveryStep;
        /// Up to this many seeds `auto` and `permutations` evaluate all 2^n configurations.
        full_factorial_max: usize = 4, integer(0, 12);
        /// Up to this many seeds `auto` evaluates all pairs.
        pairs_max: usize = 8, integer(0, 64);
        /// Sampled orders (an even number) for Shapley values where not all configurations are evaluated.
        shapley_permutations: usize = 20, integer(0, 1000);
        /// Measure committed seeds as well.
        include_committed: bool;
        /// Most configurations of one measurement; the least important are dropped. None: no limit.
        max_configs: Option<usize>, at_least(1);
    }
}
