//! Checkpoints: what a run has learnt so far, on disk at every round boundary.
//!
//! Everything inside a round follows from seed and round, so a checkpoint holds no envs and no random state: how far the
//! run has come (`run.ron`), its controller (`policy/`) and what improves it (`learner.ron`, `optim.safetensors`). It
//! appears whole under its name or not at all. `Work::WriteCheckpoint` ends `Startup` and every round that is played to
//! its end, and opens `Shutdown`: a round that was finished is never lost, however the run ends. `Work::Restore` puts a
//! resumed run where its checkpoint was.

use std::path::{Path, PathBuf};
use std::time::Instant;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;

use super::resume::ResumePoint;
use super::saved_learner::{CheckpointKind, load_learner, save_learner};
use super::shelf::{BestCheckpoint, CheckpointError, Checkpoints, POLICY_FOLDER, Progress};
use crate::clock::RunClock;
use crate::controller::{ActiveController, SavedFolder};
use crate::env::{Experiment, LoadedData, round_is_complete};
use crate::health::{Failure, RunHealth};
use crate::learner::{PolicyLearner, is_between_rollouts, rollout_rounds};
use crate::record::{Recording, RoundHistory, RunClaim, RunDirectory};
use crate::run::StopSignal;
use crate::schedule::{AddWork, RoundEnd, Shutdown, Startup, Work};
use crate::telemetry::sinks::JsonLinesSink;
use crate::telemetry::statistics::rolling_mean;
use crate::telemetry::{CheckpointReason, CheckpointSaved, Event, EventsHasher, Num, TelemetryHub, TelemetryOutbox};
use crate::training::MicroBatches;

/// Writes checkpoints of recorded runs and goes on from them.
pub struct CheckpointPlugin;

impl Plugin for CheckpointPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<CheckpointState>()
            .add_work_if(Startup, Work::Restore, restore, resource_exists::<RoundHistory>)
            .add_work_if(Startup, Work::WriteCheckpoint, write_checkpoint, begins)
            .add_work_if(
                RoundEnd,
                Work::WriteCheckpoint,
                write_checkpoint,
                round_is_complete.and_then(resource_exists::<TelemetryHub>),
            )
            .add_work_if(
                Shutdown,
                Work::WriteCheckpoint,
                write_last_checkpoint,
                resource_exists::<TelemetryHub>,
            );
    }
}

/// What the run remembers of its checkpoints.
#[derive(Resource, Debug, Default)]
pub struct CheckpointState {
    /// The best rolling accuracy so far, and the checkpoint that has it.
    best: Option<BestCheckpoint>,
    /// How far the run has come, where its newest checkpoint is older. What else lasts is as it was then: controllers and
    /// learners change for good at the ends of rounds alone.
    unsaved: Option<Progress>,
    /// Of the events that the newest checkpoint counts as told.
    recorded: EventsHasher,
    /// Why the newest checkpoint that was due is not on disk; `None` if it is.
    pub failure: Option<String>,
}

/// A run that is resumed has its checkpoint already.
fn begins(hub: Option<Res<TelemetryHub>>, point: Option<Res<ResumePoint>>) -> bool {
    hub.is_some() && point.is_none()
}

/// All that lasts from round to round.
#[derive(SystemParam)]
pub struct TrainedState<'w> {
    controller: ResMut<'w, ActiveController>,
    learner: Option<ResMut<'w, PolicyLearner>>,
    history: ResMut<'w, RoundHistory>,
    state: ResMut<'w, CheckpointState>,
}

impl TrainedState<'_> {
    fn save(&mut self, folder: &Path, kind: CheckpointKind, scenario_hash: &str) -> Result<(), Failure> {
        self.controller.0.get().save(&folder.join(POLICY_FOLDER))?;
        match &mut self.learner {
            Some(learner) => save_learner(folder, learner.learner.get(), kind, scenario_hash),
            None => Ok(()),
        }
    }

    fn load(&mut self, folder: &Path, scenario_hash: &str) -> Result<(), Failure> {
        let saved = SavedFolder::read(&folder.join(POLICY_FOLDER))?;
        self.controller.0.get().load(&saved)?;
        let Some(learner) = &mut self.learner else {
            return Ok(());
        };
        let loaded = load_learner(folder, learner.learner.get(), scenario_hash);
        let path = folder.into();
        Ok(loaded.map_err(|failure| CheckpointError::Content { path, failure })?)
    }

    fn has_diverged(&mut self) -> bool {
        let learner = self.learner.as_mut();
        learner.is_some_and(|learner| learner.learner.get().has_diverged())
    }

    fn updates(&mut self) -> Option<u64> {
        let learner = self.learner.as_mut()?;
        Some(learner.learner.get().counters().updates)
    }
}

/// Puts a resumed run where its checkpoint was: nothing on disk changes before that has worked. Later checkpoints are
/// then moved aside, before the events after this one are: killed in between, the run goes on from here as well.
pub(crate) fn restore(
    mut commands: Commands,
    point: Option<Res<ResumePoint>>,
    (data, experiment): (Res<LoadedData>, Res<Experiment>),
    recording: Option<ResMut<Recording>>,
    mut trained: TrainedState,
) -> Result<(), Failure> {
    let Some(point) = point else {
        return Ok(());
    };
    let continuation = point.continuation(data.set.hash())?;
    trained.load(&point.checkpoint, &point.progress.scenario_hash)?;
    trained.history.0.clone_from(&point.progress.history);
    // A better one may have been thrown away since the run last stood here.
    let shelf = Checkpoints::of(point.directory.path());
    trained.state.best = point.progress.best.filter(|best| shelf.has(best.next_round));
    commands.insert_resource(point.claim.clone());
    // Memory that was short once is short again.
    let parts = experiment.scenario.training.micro_batches;
    commands.insert_resource(MicroBatches(parts.max(point.progress.micro_batches)));
    commands.insert_resource(point.directory.clone());
    shelf.set_aside_after(point.progress.next_round)?;
    shelf.sweep();
    shelf.tidy(&point.progress, experiment.scenario.run.keep_last);
    if let Some(mut recording) = recording {
        recording.resume = Some(continuation);
    }
    Ok(())
}

/// Where the run stands.
#[derive(SystemParam)]
pub struct RunView<'w> {
    experiment: Res<'w, Experiment>,
    clock: Res<'w, RunClock>,
    data: Res<'w, LoadedData>,
    folder: Res<'w, RunDirectory>,
    claim: Res<'w, RunClaim>,
    parts: Res<'w, MicroBatches>,
    stop: Res<'w, StopSignal>,
    resumed: Option<Res<'w, ResumePoint>>,
}

impl RunView<'_> {
    /// # Errors
    /// The run directory is not where it was.
    fn find_directory(&self) -> Result<(), RunDirectoryLost> {
        if self.claim.is_in_place() {
            Ok(())
        } else {
            Err(RunDirectoryLost(self.folder.path().into()))
        }
    }

    /// Rounds played to their end.
    fn next_round(&self) -> u32 {
        let played = self.clock.position().round.map(|round| round + 1);
        played.unwrap_or(self.experiment.rounds.start)
    }

    /// Why a checkpoint is due, if one is.
    fn reason(&self, next_round: u32, rollout: u32, is_best: bool, has_diverged: bool) -> Option<CheckpointReason> {
        let scenario = &self.experiment.scenario;
        if has_diverged {
            Some(CheckpointReason::Emergency)
        } else if next_round == self.experiment.rounds.end {
            Some(CheckpointReason::Exit)
        } else if self.stop.is_requested() {
            Some(CheckpointReason::Signal)
        } else if is_best {
            Some(CheckpointReason::Best)
        } else {
            is_due(next_round, rollout, scenario.run.checkpoint_every).then_some(CheckpointReason::Periodic)
        }
    }

    fn progress(&self, next_round: u32, next_seq: u64, best: Option<BestCheckpoint>, history: &[f64]) -> Progress {
        let Experiment { scenario, layout, .. } = &*self.experiment;
        let changes = self.resumed.as_ref().map(|point| point.progress.changes.clone());
        Progress {
            format: Progress::FORMAT,
            engine: env!("CARGO_PKG_VERSION").into(),
            scenario_hash: self.folder.scenario_hash().into(),
            data_hash: self.data.set.hash().into(),
            rounds: scenario.run.rounds,
            next_round,
            next_seq,
            recorded: None,
            n_envs: scenario.run.n_envs,
            micro_batches: self.parts.0,
            slots: layout.slots().iter().map(|spec| spec.slot.to_string()).collect(),
            controller: scenario.policy.controller.clone(),
            changes: changes.unwrap_or_default(),
            history: history.to_vec(),
            best,
        }
    }
}

/// The way of a checkpoint to disk and into the record.
#[derive(SystemParam)]
pub struct CheckpointWriter<'w> {
    trained: TrainedState<'w>,
    view: RunView<'w>,
    hub: ResMut<'w, TelemetryHub>,
    outbox: ResMut<'w, TelemetryOutbox>,
}

impl CheckpointWriter<'_> {
    /// Puts what is unsaved on disk. A checkpoint that cannot be written leaves the older ones as they are; the run goes
    /// on, tries again at its end and then says so.
    fn write(&mut self, reason: CheckpointReason) {
        let Some(mut progress) = self.trained.state.unsaved.take() else {
            return;
        };
        let started = Instant::now();
        let shelf = Checkpoints::of(self.view.folder.path());
        let next_round = progress.next_round;
        match self.put(&shelf, &mut progress, reason) {
            Ok(size_bytes) => {
                shelf.tidy(&progress, self.view.experiment.scenario.run.keep_last);
                self.outbox.push(Event::run(CheckpointSaved {
                    path: Checkpoints::relative_path(next_round),
                    round: next_round,
                    update: self.trained.updates(),
                    rolling_accuracy: rolling_mean(&progress.history).map(Num),
                    reason,
                    size_bytes,
                    wall_ms: Num(started.elapsed().as_secs_f64() * 1e3),
                }));
                self.hub.flush(&mut self.outbox);
                let state = &mut self.trained.state;
                // Not before: what is not on disk is not the best of what there is.
                state.best = progress.best;
                state.failure = None;
            }
            Err(error) => {
                tracing::warn!(%error, "no checkpoint after {next_round} rounds; the older ones are as they were");
                let state = &mut self.trained.state;
                (state.unsaved, state.failure) = (Some(progress), Some(error.to_string()));
            }
        }
    }

    fn put(&mut self, shelf: &Checkpoints, progress: &mut Progress, reason: CheckpointReason) -> Result<u64, Failure> {
        // Whatever has taken the place of the run directory is not the run's to write into.
        self.view.find_directory()?;
        // What the checkpoint counts as told has to be on disk before it is.
        self.hub.settle();
        let events = self.view.folder.path().join(JsonLinesSink::FILE_NAME);
        let marked = self.trained.state.recorded.mark_before(&events, progress.next_seq);
        // The sink that writes them says what is wrong.
        progress.recorded = marked.ok();
        let progress = &*progress;
        let kind = kind_of(progress, reason);
        let save = |folder: &Path| self.trained.save(folder, kind, &progress.scenario_hash);
        Ok(shelf.put(progress, save)?)
    }
}

/// Whether a periodic checkpoint fell due in one of the last `rollout` rounds: in the middle of a rollout it cannot be
/// written, and waits for its end.
const fn is_due(next_round: u32, rollout: u32, every: u32) -> bool {
    next_round == 0 || next_round / every > next_round.saturating_sub(rollout) / every
}

fn kind_of(progress: &Progress, reason: CheckpointReason) -> CheckpointKind {
    if reason == CheckpointReason::Emergency {
        CheckpointKind::Emergency
    } else if progress.best.is_some_and(|best| best.next_round == progress.next_round) {
        CheckpointKind::Best
    } else {
        CheckpointKind::Last
    }
}

/// The run's directory is not where it was: whatever is learnt from here on would be kept nowhere.
#[derive(Debug, thiserror::Error)]
#[error(
    "the run directory {0} was deleted, moved or replaced while the run was played; nothing more can be recorded in it"
)]
pub struct RunDirectoryLost(PathBuf);

/// At a boundary between rounds: writes what lasts if it is due, else remembers that it is not on disk.
///
/// # Errors
/// The run has lost its directory, and its scenario requires a record.
pub(crate) fn write_checkpoint(mut writer: CheckpointWriter) -> Result<(), RunDirectoryLost> {
    if is_between_rollouts(
        writer.trained.learner.as_deref(),
        &writer.view.experiment,
        &writer.view.clock,
    ) {
        write_if_due(&mut writer);
    }
    // After the round is remembered: where the directory is found again by the end, so is the round.
    if writer.view.experiment.scenario.telemetry.require {
        writer.view.find_directory()?;
    }
    Ok(())
}

fn write_if_due(writer: &mut CheckpointWriter) {
    let CheckpointWriter { trained, view, hub, .. } = writer;
    let learner = trained.learner.as_deref();
    let rollout = rollout_rounds(learner, &view.experiment);
    let next_round = view.next_round();
    // Damage done on purpose says nothing about what is good.
    let is_candidate = view.experiment.scenario.faults.is_empty();
    let record = rolling_mean(&trained.history.0)
        .filter(|_| is_candidate)
        .map(|accuracy| BestCheckpoint { next_round, accuracy })
        .filter(|record| trained.state.best.is_none_or(|best| record.accuracy > best.accuracy));
    let best = record.or(trained.state.best);
    let progress = view.progress(next_round, hub.next_seq(), best, &trained.history.0);
    let has_diverged = trained.has_diverged();
    let reason = view.reason(next_round, rollout, record.is_some(), has_diverged);
    trained.state.unsaved = Some(progress);
    if let Some(reason) = reason {
        writer.write(reason);
    }
}

/// However the run ends, its last boundary is on disk.
fn write_last_checkpoint(mut writer: CheckpointWriter, health: Res<RunHealth>) {
    let reason = if health.failure.is_some() {
        CheckpointReason::Emergency
    } else if writer.view.stop.is_requested() {
        CheckpointReason::Signal
    } else {
        CheckpointReason::Exit
    };
    writer.write(reason);
}

#[cfg(test)]
mod tests;
