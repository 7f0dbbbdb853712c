//! Section `attribution`: the measurement of each seed's contribution.

use crate::schema::{choice, section};

choice! {
    /// On/off configurations of the live seeds that are evaluated.
    #[derive(Copy, Eq)]
    pub enum AttributionStrategy {
        /// all configurations of few seeds, selected ones of many
        Auto,
        /// the configurations with one seed switched off
        AblationOnly,
        /// all configurations of few seeds, those of sampled orders of joining of many, for Shapley values at every measurement
        Permutations,
        /// no configurations; contributions stay unknown
        Off,
    }
}

choice! {
    /// Steps at which contributions are measured.
    #[derive(Copy, Eq)]
    pub enum Cadence {
        /// every step
        EveryStep,
        /// every k-th step, and the last one
        EveryK(u32, at_least(1)),
        /// steps in which the stage or the amplitude of a seed has changed, steps with a held seed, and the last one
        OnChange,
        /// the last step of an episode
        Terminal,
    }
}

section! {
    /// Section `attribution`: the measurement of each seed's contribution.
    #[derive(Copy)]
    pub struct AttributionConfig {
        /// On/off configurations of the live seeds that are evaluated.
        strategy: AttributionStrategy = AttributionStrategy::Auto;
        /// Steps at which contributions are measured.
        cadence: Cadence = Cadence::EveryStep;
        /// Measures committed seeds too.
        include_committed: bool;
    }
}
