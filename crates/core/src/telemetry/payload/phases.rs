//! The parts of the time of a round.

use serde::{Deserialize, Serialize};

use crate::telemetry::encoding::Num;

macro_rules! phases {
    ($($(#[$doc:meta])+ $phase:ident => $name:ident),+ $(,)?) => {
        /// Phases of a run's work; each is a field of [`PhaseTimes`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Phase { $($(#[$doc])+ $phase),+ }

        /// Wall time of a round by what the run was doing, in milliseconds; all of them together are the round.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        pub struct PhaseTimes {
            $($(#[$doc])+ pub $name: Num,)+
            /// Between the schedules: what a program does that plays its run step by step.
            pub other: Num,
        }

        impl PhaseTimes {
            /// The times of a round from that of each phase and that of none.
            pub(in crate::telemetry) fn of(time: impl Fn(Phase) -> Num, other: Num) -> Self {
                Self { $($name: time(Phase::$phase),)+ other }
            }

            /// Each by its name.
            pub const fn named(&self) -> [(&'static str, Num); Phase::COUNT + 1] {
                [$((stringify!($name), self.$name),)+ ("other", self.other)]
            }
        }

        impl Phase {
            /// Number of phases.
            pub const COUNT: usize = [$(Self::$phase),+].len();
        }
    };
}

phases! {
    /// Fresh hosts at the round's start; learning rates at each step's.
    Reset => reset,
    /// Training batches, with the order of their samples. On CUDA the time to queue the work; `sync` waits for its end.
    Train => train,
    /// Validation batches under all configurations of the seeds, and the test part.
    Validate => validate,
    /// Waiting for the devices, and reading the step's numbers.
    Sync => sync,
    /// Metrics, governor, rollbacks and what each seed contributes.
    Assess => assess,
    /// Observations, masks and the controller's choice.
    Decide => decide,
    /// Actions, lifecycles and rewards.
    Act => act,
    /// Events.
    Record => record,
    /// The policy's update.
    Update => update,
    /// Checkpoints inside the round; those between rounds belong to none.
    Checkpoint => checkpoint,
}
