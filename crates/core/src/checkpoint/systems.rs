//! Checkpoints between rounds: what a run has learnt so far, on disk at every round boundary.
//!
//! Everything inside a round follows from seed and round, so such a checkpoint holds no envs and no random state. It holds
//! the run's progress (`run.ron`), its controller (`policy/`) and its learner (`learner.ron`, `optim.safetensors`). It
//! appears whole under its name or not at all. `Work::WriteCheckpoint` ends `Startup` and every round that is played to
//! its end, and opens `Shutdown`, so a finished round is never lost, however the run ends. `Work::Restore` restores a
//! resumed run from its checkpoint. Checkpoints inside a round (`inside`) hold the same and the envs.

use bevy_ecs::prelude::*;

use super::id::CheckpointId;
use super::resume::ResumePoint;
use super::shelf::{BestCheckpoint, CheckpointError, Checkpoints};
use super::writer::{CheckpointWriter, RunInputs, TrainedState};
use crate::env::Experiment;
use crate::health::{Failure, RunHealth};
use crate::keep::{KeptNetworks, NetworkShelf};
use crate::learner::is_between_rollouts;
use crate::record::Recording;
use crate::telemetry::statistics::rolling_mean;
use crate::telemetry::{CheckpointReason, RecordFails, RecordGap};
use crate::unfinished::{UnfinishedRound, UnfinishedRoundError};

/// The number of consecutive failures to write a checkpoint after which a run without any stops.
const MOST_FAILURES: u32 = 3;

/// Restores a resumed run from its checkpoint. Nothing on disk changes before that has succeeded. Then it moves later
/// checkpoints aside, before the later events, so a run killed in between also resumes from this checkpoint.
pub(crate) fn restore(
    mut commands: Commands,
    point: Option<Res<ResumePoint>>,
    inputs: RunInputs,
    experiment: Res<Experiment>,
    recording: Option<ResMut<Recording>>,
    mut trained: TrainedState,
    mut kept: ResMut<KeptNetworks>,
) -> Result<(), Failure> {
    let Some(point) = point else {
        return Ok(());
    };
    let (data_hash, weights_hash) = inputs.hashes();
    let continuation = point.continuation(data_hash, weights_hash)?;
    trained.load(&point.checkpoint)?;
    let id = point.progress.id();
    if id.is_inside_round() {
        let content = |failure: UnfinishedRoundError| CheckpointError::Content {
            path: point.checkpoint.clone(),
            failure: failure.into(),
        };
        // Its envs take it over once the round has begun.
        commands.insert_resource(UnfinishedRound::read(&point.checkpoint).map_err(content)?);
    }
    trained.history.0.clone_from(&point.progress.history);
    // A better one may have been deleted since the run last reached this point.
    let shelf = Checkpoints::of(point.directory.path());
    trained.state.best = match point.progress.best {
        Some(best) if shelf.has(best.next_round)? => Some(best),
        _ => None,
    };
    commands.insert_resource(point.claim.clone());
    commands.insert_resource(point.directory.clone());
    shelf.set_aside_after(id)?;
    let networks = NetworkShelf::of(point.directory.path());
    networks.forget_from(id.round)?;
    let run = &experiment.scenario.run;
    if id.round < run.rounds {
        networks.forget_last_before(id.round, run.keep)?;
    }
    kept.best = networks.best()?;
    shelf.sweep();
    shelf.tidy(&point.progress);
    if let Some(mut recording) = recording {
        recording.resume = Some(continuation);
    }
    Ok(())
}

/// Writes the lasting state at a boundary between rounds, and between rollouts.
///
/// # Errors
/// If the run has lost its directory, or can't write a first checkpoint.
pub(crate) fn write_checkpoint(mut writer: CheckpointWriter) -> Result<(), Failure> {
    if is_between_rollouts(
        writer.trained.learner.as_deref(),
        &writer.view.experiment,
        &writer.view.clock,
    ) {
        write_boundary(&mut writer);
    }
    // This follows the memory of the round, so a directory that is found again by the end also gets the round.
    writer.view.find_directory()?;
    let (state, shelf) = (&writer.trained.state, Checkpoints::of(writer.view.folder.path()));
    if let Some(why) = state.failure.clone().filter(|_| state.failures >= MOST_FAILURES)
        && shelf.list().is_ok_and(|there| there.is_empty())
    {
        let why = format!("{why}; nothing of the run is on disk, so all that it learns would be lost");
        return Err(RecordFails(RecordGap {
            part: "checkpoint".into(),
            lost_events: 0,
            round: None,
            why,
        })
        .into());
    }
    Ok(())
}

fn write_boundary(writer: &mut CheckpointWriter) {
    let CheckpointWriter { trained, view, hub, .. } = writer;
    let next_round = view.next_round();
    // Deliberate damage doesn't show which checkpoint is good.
    let is_candidate = view.experiment.scenario.faults.is_empty();
    let record = rolling_mean(&trained.history.0)
        .filter(|_| is_candidate)
        .map(|accuracy| BestCheckpoint { next_round, accuracy })
        .filter(|record| trained.state.best.is_none_or(|best| record.accuracy > best.accuracy));
    let best = record.or(trained.state.best);
    let at = CheckpointId::before(next_round);
    trained.state.unsaved = Some(view.progress(at, hub, best, &trained.history.0));
    let reason = match trained.has_diverged() {
        true => CheckpointReason::Emergency,
        false => view.reason(next_round, &trained.state, record.is_some()),
    };
    writer.write(reason);
}

/// Writes the last boundary of the run to disk, however the run ends.
pub(crate) fn write_last_checkpoint(mut writer: CheckpointWriter, health: Res<RunHealth>) {
    let reason = if health.failure.is_some() {
        CheckpointReason::Emergency
    } else if writer.view.stop.is_requested() {
        CheckpointReason::Signal
    } else {
        CheckpointReason::Exit
    };
    writer.write(reason);
}
