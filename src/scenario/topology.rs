//! Section `initial_topology`: seeds that are committed before an episode's first step (spec 06 §15.3).

use serde::{Deserialize, Serialize};

/// What stands in the slots when an episode begins. Weights are always fresh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InitialTopology {
    /// Every slot is empty.
    #[default]
    Empty,
    /// The same seeds in every episode.
    Seeds(Vec<InitialSeed>),
    /// What a recorded run had committed in the end.
    Run {
        /// Its folder, relative to the scenario.
        path: String,
        /// `None`: the episode that was best with its committed seeds alone.
        episode: Option<EpisodeChoice>,
    },
}

/// A seed by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitialSeed {
    pub slot: String,
    pub blueprint: String,
    /// Only its operator counts. `None`: `sigmoid_add`.
    pub style: Option<String>,
}

/// Which episode of a recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EpisodeChoice {
    /// Every env and round starts with what the same env came to in the same round.
    Each,
    /// Both 0-based.
    At { round: u32, env: u32 },
}
