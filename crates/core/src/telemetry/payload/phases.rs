//! Where the time of a round went.

use serde::{Deserialize, Serialize};

use crate::telemetry::encoding::Num;

/// Wall time of a round by what the run was doing, in milliseconds; all of them together are the round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseTimes {
    /// Fresh hosts at the round's start; order of the samples and learning rates at each step's.
    pub reset: Num,
    /// Training batches. Envs train and validate side by side, so the wall time of all batches is divided as the envs'
    /// threads spent theirs. On CUDA that is the time to queue the work; `sync` waits for its end.
    pub train: Num,
    /// Validation batches under all configurations of the seeds, and the test part.
    pub validate: Num,
    /// Waiting for the devices, and reading the step's numbers.
    pub sync: Num,
    /// Metrics, governor, rollbacks and what each seed contributes.
    pub assess: Num,
    /// Observations, masks and the controller's choice.
    pub decide: Num,
    /// Actions, lifecycles and rewards.
    pub act: Num,
    /// Events.
    pub record: Num,
    /// The policy's update.
    pub update: Num,
    /// Checkpoints inside the round; those between rounds belong to none.
    pub checkpoint: Num,
    /// Between the schedules: what a program does that plays its run step by step.
    pub other: Num,
}

impl PhaseTimes {
    /// Each by its name.
    pub const fn named(&self) -> [(&'static str, Num); 11] {
        [
            ("reset", self.reset),
            ("train", self.train),
            ("validate", self.validate),
            ("sync", self.sync),
            ("assess", self.assess),
            ("decide", self.decide),
            ("act", self.act),
            ("record", self.record),
            ("update", self.update),
            ("checkpoint", self.checkpoint),
            ("other", self.other),
        ]
    }
}
