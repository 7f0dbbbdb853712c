//! Section `initial_topology`: seeds that are committed before an episode's first step.

use crate::growth::{GerminationStyle, SlotId};
use crate::schema::{choice, record};

choice! {
    /// Seeds that are in the slots when an episode begins. Weights are always fresh.
    #[derive(Eq)]
    pub enum InitialTopology {
        /// none: every slot is empty
        Empty,
        /// these seeds, in every episode
        Seeds(Vec<InitialSeed>),
        /// the seeds that a recorded run had committed at the end of an episode
        Run {
            /// Folder of the recorded run, relative to this file.
            path: String;
            /// Which of its episodes. None: the best one.
            episode: Option<EpisodeChoice>;
        },
    }
}

record! {
    /// A committed seed.
    #[derive(Eq)]
    pub struct InitialSeed {
        /// Its slot.
        slot: SlotId;
        /// Recipe of the seed.
        blueprint: String, BLUEPRINT;
        /// Its operator is how the seed enters the host. None: sigmoid_add.
        style: Option<GerminationStyle>;
    }
}

choice! {
    /// Which episode of a recorded run.
    #[derive(Copy, Eq)]
    pub enum EpisodeChoice {
        /// every env and round starts with what the same env had at the end of the same round
        Each,
        /// that of one env in one round
        At {
            /// Round, from 0.
            round: u32;
            /// Env, from 0.
            env: u32;
        },
    }
}
