//! Section `initial_topology`: seeds that are committed before an episode's first step.

use crate::growth::{GerminationStyle, SlotId};
use crate::schema::{choice, record};

choice! {
    /// Seeds that are in the slots when an episode begins. Weights are always fresh.
    #[derive(Eq)]
    pub enum InitialTopology {
        /// no seeds; every slot is empty
        Empty,
        /// these seeds, in every episode
        Seeds(Vec<InitialSeed>),
    }
}

record! {
    /// A committed seed.
    #[derive(Eq)]
    pub struct InitialSeed {
        /// Slot of the seed.
        slot: SlotId;
        /// Recipe of the seed.
        blueprint: String, BLUEPRINT;
        /// Blend style. Its operator determines how the seed enters the host. None: sigmoid_add.
        style: Option<GerminationStyle>;
    }
}
