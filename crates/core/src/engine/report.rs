//! The result of a run, and the end of its record.

use std::path::PathBuf;

use bevy_app::App;
use bevy_ecs::prelude::World;

use crate::checkpoint::CheckpointState;
use crate::health::EngineError;
use crate::keep::KeptNetworks;
use crate::record::{Recorder, RunDirectory};
use crate::run::{StopRequest, StopSignal};
use crate::telemetry::{LiveState, RecordGap, RunFinished, RunState, TelemetryHub, TelemetryOutbox};

/// The result of a run.
#[derive(Debug)]
pub struct RunReport {
    /// `None` for a run in memory, or one that failed before anything was written.
    pub record: Option<RunRecord>,
    /// The first failure of a system.
    pub failure: Option<EngineError>,
    /// The request that ended the run early.
    pub stopped_by: Option<StopRequest>,
    /// Gaps of the record: events, `checkpoint` if the newest one is not there, `networks` if those that were to be
    /// kept are not, `trajectories` if some are not.
    pub gaps: Vec<RecordGap>,
    /// The networks that the run has kept, as values.
    pub networks: KeptNetworks,
}

/// The record of a run.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// Name of the run's folder.
    pub run_id: String,
    /// The run's folder.
    pub directory: PathBuf,
    /// Rounds, committed seeds, the best hosts. `None` if the run failed before its record could begin.
    pub results: Option<LiveState>,
}

impl RunRecord {
    /// The last event. `None` if the run failed before its record could begin.
    pub fn finished(&self) -> Option<&RunFinished> {
        self.results.as_ref().and_then(|results| results.finished.as_ref())
    }
}

impl RunReport {
    /// # Errors
    /// The failure of a run that failed.
    pub fn into_result(mut self) -> Result<Self, EngineError> {
        self.failure.take().map_or(Ok(self), Err)
    }
}

/// Sends the events since the last flush: of a failed step, all that led to it.
fn flush_events(world: &mut World) {
    let Some(mut outbox) = world.remove_resource::<TelemetryOutbox>() else {
        return;
    };
    if let Some(mut hub) = world.get_resource_mut::<TelemetryHub>() {
        hub.flush(&mut outbox);
    }
    world.insert_resource(outbox);
}

/// Closes the record and returns the report.
pub(super) fn finish(app: &mut App, failure: Option<EngineError>) -> RunReport {
    let world = app.world_mut();
    let checkpoints = world.get_resource::<CheckpointState>();
    let missing_checkpoint = checkpoints.and_then(|state| state.failure.clone());
    let recorder = world.get_resource::<Recorder>();
    let missing_trajectories = recorder.and_then(|recorder| recorder.failure.clone());
    let stopped_by = world.get_resource::<StopSignal>().and_then(StopSignal::requested);
    let networks = world.get_resource::<KeptNetworks>().cloned().unwrap_or_default();
    let directory = world.get_resource::<RunDirectory>().cloned();
    let mut report = RunReport {
        record: directory.map(|directory| RunRecord {
            run_id: directory.run_id().into(),
            directory: directory.path().to_path_buf(),
            results: None,
        }),
        failure,
        stopped_by,
        gaps: Vec::new(),
        networks,
    };
    let Some(record) = &mut report.record else {
        return report;
    };
    flush_events(world);
    if let Some(mut hub) = world.get_resource_mut::<TelemetryHub>() {
        let status = match (&report.failure, stopped_by) {
            (Some(_), _) => RunState::Failed,
            (None, Some(_)) => RunState::Interrupted,
            (None, None) => RunState::Completed,
        };
        report.gaps = hub.finish(status, report.failure.as_ref().map(ToString::to_string));
        record.results = Some(hub.live().clone());
    }
    for (part, why) in [
        ("checkpoint", missing_checkpoint),
        ("networks", report.networks.failure.clone()),
        ("trajectories", missing_trajectories),
    ] {
        report.gaps.extend(why.map(|why| RecordGap {
            part: part.into(),
            lost_events: 0,
            round: None,
            why,
        }));
    }
    report
}
