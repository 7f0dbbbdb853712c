//! State that outlasts the process: checkpoints on disk, between rounds and inside them, and runs that resume from them.

mod checksums;
mod saved_learner;
mod id;
mod shelf;
mod frozen;
mod resume;
mod writer;
pub(crate) mod anomalies;
pub(crate) mod inside;
pub(crate) mod systems;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleLabel;

pub use checksums::ChecksumError;
pub use frozen::{FrozenPolicy, FrozenPolicyError, PolicyOrigin};
pub use id::CheckpointId;
pub use resume::{PastRun, ResumeError, ResumePoint, compare_inputs, scenario_fields};
pub use shelf::{BestCheckpoint, CheckpointError, CheckpointName, Checkpoints, KEEP_LAST, Progress};
pub use writer::{CheckpointState, RunDirectoryLost};

use crate::env::round_is_complete;
use crate::record::RoundHistory;
use crate::schedule::{AddWork, RestoreRound, RoundEnd, SaveRound, Shutdown, Startup, StepEnd, Work};
use crate::telemetry::TelemetryHub;

/// Writes checkpoints of recorded runs and resumes from them.
pub struct CheckpointPlugin;

impl Plugin for CheckpointPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<CheckpointState>()
            .add_work_if(
                Startup,
                Work::Restore,
                systems::restore,
                resource_exists::<RoundHistory>,
            )
            .add_work_if(Startup, Work::WriteCheckpoint, systems::write_checkpoint, begins)
            .add_work_if(
                RoundEnd,
                Work::WriteCheckpoint,
                systems::write_checkpoint,
                round_is_complete.and_then(resource_exists::<TelemetryHub>),
            )
            .add_work_if(
                Shutdown,
                Work::WriteCheckpoint,
                systems::write_last_checkpoint,
                resource_exists::<TelemetryHub>,
            )
            .add_work_if(
                StepEnd,
                Work::PlanCheckpoint,
                inside::plan_checkpoint,
                resource_exists::<TelemetryHub>,
            )
            .add_work(SaveRound, Work::WriteRound, inside::write_round)
            .add_work(RestoreRound, Work::EnterRound, inside::enter_round);
        for end in [StepEnd.intern(), RoundEnd.intern()] {
            // Systems that see anomalies come before it by their set: `Record` comes before `Checkpoint`.
            let (answer, if_any) = (anomalies::answer_anomalies, anomalies::has_onsets);
            app.add_unordered_work(end, Work::AnswerAnomalies, answer, if_any);
        }
    }
}

/// Returns whether the run starts afresh. A resumed run already has its checkpoint.
fn begins(hub: Option<Res<TelemetryHub>>, point: Option<Res<ResumePoint>>) -> bool {
    hub.is_some() && point.is_none()
}
