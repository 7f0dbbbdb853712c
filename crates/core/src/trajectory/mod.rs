//! Trajectories: what every controller saw, could have done, did, and what followed, as data to learn from without playing.
//!
//! `systems` collect the steps of every env, `segment` is an unbroken stretch of an episode and its form in a shard, `set` the
//! folder `NAME.traj` with its manifest. `docs/reference/trajectories.md` is the format.

mod segment;
mod set;
mod systems;

use bevy_app::{App, Plugin};

pub use segment::{Segment, SegmentFinish, Sizes};
pub use set::{FOLDER, MANIFEST_FILE, Manifest, Shard, TrajectoryError, TrajectorySet};
pub use systems::Recorder;

use crate::controller::ObserveAll;
use crate::env::{EnvId, KeepInRounds, round_is_complete};
use crate::schedule::{Act, AddWork, RoundEnd, Startup, StepEnd, Work};
use systems::{EnvTrajectory, begin_set, end_trajectories, record_steps, write_trajectories};

/// Records trajectories of a run that has a folder; added where the scenario asks for them (`telemetry.trajectories`).
#[derive(Clone)]
pub struct TrajectoryPlugin;

impl Plugin for TrajectoryPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Recorder>()
            .init_resource::<ObserveAll>()
            .register_required_components::<EnvId, EnvTrajectory>();
        app.add_work(Startup, Work::BeginTrajectories, begin_set)
            .add_work(Act, Work::RecordTrajectories, record_steps)
            .add_work(StepEnd, Work::EndTrajectories, end_trajectories)
            .add_work_if(RoundEnd, Work::WriteTrajectories, write_trajectories, round_is_complete)
            .keep_in_rounds::<EnvTrajectory>("trajectory");
    }
}
