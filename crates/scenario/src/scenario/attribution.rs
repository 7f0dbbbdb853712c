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

section! {
    /// Section `attribution`: how each seed's contribution is measured.
    #[derive(Copy)]
    pub struct AttributionConfig {
        /// Which on/off configurations of the live seeds are evaluated.
        strategy: AttributionStrategy = AttributionStrategy::Auto;
        /// When contributions are measured.
        cadence: Cadence = Cadence::EveryStep;
        /// Measure committed seeds as well.
        include_committed: bool;
    }
}
