//! Writing of a checkpoint: its content, the position of the run, and its event.

use std::path::{Path, PathBuf};
use std::time::Instant;

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;

use super::id::CheckpointId;
use super::resume::ResumePoint;
use super::saved_learner::{load_learner, save_learner};
use super::shelf::{BestCheckpoint, CheckpointError, Checkpoints, POLICY_FOLDER, Progress};
use crate::clock::RunClock;
use crate::controller::{ActiveController, SavedFolder};
use crate::env::{Experiment, LoadedData, StartingWeights};
use crate::health::{AtPath, Failure};
use crate::learner::{PolicyLearner, RolloutSource};
use crate::record::{Recording, RoundHistory, RunClaim, RunDirectory};
use crate::run::StopSignal;
use crate::storage::write_synced;
use crate::telemetry::{CheckpointReason, CheckpointSaved, Event, TelemetryHub, TelemetryOutbox};
use crate::unfinished::UnfinishedRound;

/// The last rollouts as segments of trajectories, if updates learn from them too.
const ROLLOUTS_FILE: &str = "rollouts.safetensors";

/// The run's memory of its checkpoints.
#[derive(Resource, Debug, Default)]
pub struct CheckpointState {
    /// The best rolling accuracy so far, and the checkpoint that has it.
    pub(super) best: Option<BestCheckpoint>,
    /// The run's progress, if its newest checkpoint is older. The other lasting state is unchanged since then: controllers and
    /// learners change permanently only at the ends of rounds.
    pub(super) unsaved: Option<Progress>,
    /// An anomaly requests a checkpoint, wherever the run is.
    pub(super) anomaly_asks: bool,
    /// True if the run has warned that it keeps no more of them.
    pub(super) has_all_anomalies: bool,
    /// The time of the last try to write one, or `None` before the first.
    pub(super) last_attempt: Option<Instant>,
    /// The reason why the newest due checkpoint isn't on disk, or `None` if it is.
    pub failure: Option<String>,
    /// The number of consecutive checkpoints that aren't on disk.
    pub(super) failures: u32,
}

/// The state that lasts from round to round.
#[derive(SystemParam)]
pub struct TrainedState<'w> {
    controller: ResMut<'w, ActiveController>,
    pub(super) learner: Option<ResMut<'w, PolicyLearner>>,
    rollouts: Option<ResMut<'w, RolloutSource>>,
    pub(super) history: ResMut<'w, RoundHistory>,
    pub(super) state: ResMut<'w, CheckpointState>,
}

impl TrainedState<'_> {
    fn save(&mut self, folder: &Path) -> Result<(), Failure> {
        self.controller.0.get().save(&folder.join(POLICY_FOLDER))?;
        if let Some(kept) = self.rollouts.as_mut().and_then(|source| source.kept()) {
            write_synced(&folder.join(ROLLOUTS_FILE), &kept.encode()?)?;
        }
        match &mut self.learner {
            Some(learner) => save_learner(folder, learner.learner.get()),
            None => Ok(()),
        }
    }

    pub(super) fn load(&mut self, folder: &Path) -> Result<(), Failure> {
        let saved = SavedFolder::read(&folder.join(POLICY_FOLDER))?;
        self.controller.0.get().load(&saved)?;
        let Some(learner) = &mut self.learner else {
            return Ok(());
        };
        if let Some(kept) = self.rollouts.as_mut().and_then(|source| source.kept()) {
            let path = folder.join(ROLLOUTS_FILE);
            let bytes = crate::files::read(&path).at(&path)?;
            let unreadable = |why| CheckpointError::Content {
                path,
                failure: Failure::message(why),
            };
            kept.decode(&bytes).map_err(unreadable)?;
        }
        let loaded = load_learner(folder, learner.learner.get());
        let path = folder.into();
        Ok(loaded.map_err(|failure| CheckpointError::Content { path, failure })?)
    }

    pub(super) fn has_diverged(&mut self) -> bool {
        let learner = self.learner.as_mut();
        learner.is_some_and(|learner| learner.learner.get().has_diverged())
    }
}

/// Inputs of a run. A resumed run has the same.
#[derive(SystemParam)]
pub struct RunInputs<'w> {
    data: Res<'w, LoadedData>,
    weights: Option<Res<'w, StartingWeights>>,
}

impl RunInputs<'_> {
    /// Hashes of its data and of the weights that its episodes start from. `None` if all weights are drawn.
    pub(super) fn hashes(&self) -> (&str, Option<&str>) {
        let weights = self.weights.as_ref().and_then(|weights| weights.hash.as_deref());
        (self.data.set.hash(), weights)
    }
}

/// Position of the run.
#[derive(SystemParam)]
pub struct RunView<'w> {
    pub(super) experiment: Res<'w, Experiment>,
    pub(super) clock: Res<'w, RunClock>,
    inputs: RunInputs<'w>,
    pub(super) folder: Res<'w, RunDirectory>,
    claim: Res<'w, RunClaim>,
    pub(super) stop: Res<'w, StopSignal>,
    resumed: Option<Res<'w, ResumePoint>>,
    recording: Option<Res<'w, Recording>>,
}

impl RunView<'_> {
    /// # Errors
    /// If the run directory isn't where it was.
    pub(super) fn find_directory(&self) -> Result<(), RunDirectoryLost> {
        if self.claim.is_in_place() {
            Ok(())
        } else {
            Err(RunDirectoryLost(self.folder.path().into()))
        }
    }

    /// # Errors
    /// If another process plays the run.
    fn is_not_succeeded(&self) -> Result<(), Failure> {
        let fence = self.recording.as_ref().and_then(|recording| recording.ends_at.as_ref());
        match fence.filter(|fence| fence.exists()) {
            Some(fence) => Err(Failure::message(format!(
                "{} exists: another process is playing this run",
                fence.display()
            ))),
            None => Ok(()),
        }
    }

    /// Number of finished rounds.
    pub(super) fn next_round(&self) -> u32 {
        let played = self.clock.position().round.map(|round| round + 1);
        played.unwrap_or(self.experiment.rounds.start)
    }

    /// The reason for the checkpoint before round `next_round`.
    pub(super) fn reason(&self, next_round: u32, state: &CheckpointState, is_best: bool) -> CheckpointReason {
        if next_round == self.experiment.rounds.end {
            CheckpointReason::Exit
        } else if state.anomaly_asks {
            CheckpointReason::Anomaly
        } else if self.stop.is_requested() {
            CheckpointReason::Signal
        } else if is_best {
            CheckpointReason::Best
        } else {
            CheckpointReason::Periodic
        }
    }

    pub(super) fn progress(
        &self,
        at: CheckpointId,
        hub: &TelemetryHub,
        best: Option<BestCheckpoint>,
        history: &[f64],
    ) -> Progress {
        let Experiment { scenario, layout, .. } = &*self.experiment;
        let changes = self.resumed.as_ref().map(|point| point.progress.changes.clone());
        let (data_hash, weights_hash) = self.inputs.hashes();
        Progress {
            format: Progress::FORMAT,
            engine: env!("CARGO_PKG_VERSION").into(),
            scenario_hash: self.folder.scenario_hash().into(),
            data_hash: data_hash.into(),
            weights_hash: weights_hash.map(String::from),
            rounds: scenario.run.rounds,
            next_round: at.round,
            step: at.step,
            next_seq: hub.next_seq(),
            recorded: Some(hub.mark()),
            n_envs: scenario.run.n_envs,
            slots: layout.slots().iter().map(|spec| spec.slot.to_string()).collect(),
            controller: scenario.policy.controller.clone(),
            changes: changes.unwrap_or_default(),
            history: history.to_vec(),
            best,
        }
    }
}

/// Writes a checkpoint to disk and its event into the record.
#[derive(SystemParam)]
pub struct CheckpointWriter<'w> {
    pub(super) trained: TrainedState<'w>,
    pub(super) view: RunView<'w>,
    pub(super) hub: ResMut<'w, TelemetryHub>,
    outbox: ResMut<'w, TelemetryOutbox>,
}

impl CheckpointWriter<'_> {
    /// The reason why the round is left or saved.
    pub(super) fn reason_inside(&self) -> CheckpointReason {
        match self.view.stop.is_requested() {
            _ if self.trained.state.anomaly_asks => CheckpointReason::Anomaly,
            true => CheckpointReason::Signal,
            false => CheckpointReason::Periodic,
        }
    }

    /// Writes the state inside the round to disk. A checkpoint that can't be written is left out.
    pub(super) fn write_inside(&mut self, round: &UnfinishedRound, reason: CheckpointReason) {
        let clock = &self.view.clock;
        let at = CheckpointId {
            round: clock.round(),
            step: clock.step(),
        };
        let (best, history) = (self.trained.state.best, &self.trained.history.0);
        let mut progress = self.view.progress(at, &self.hub, best, history);
        self.save(&mut progress, Some(round), reason);
    }

    /// Writes unsaved state to disk. If that fails, the older checkpoints are unchanged. The run continues,
    /// tries again at its end and then reports the failure.
    pub(super) fn write(&mut self, reason: CheckpointReason) {
        let Some(mut progress) = self.trained.state.unsaved.take() else {
            return;
        };
        if self.save(&mut progress, None, reason) {
            // Not before, because a checkpoint that isn't on disk can't be the best one.
            self.trained.state.best = progress.best;
        } else {
            self.trained.state.unsaved = Some(progress);
        }
    }

    /// Saves a checkpoint. Returns whether it is on disk.
    fn save(&mut self, progress: &mut Progress, round: Option<&UnfinishedRound>, reason: CheckpointReason) -> bool {
        let started = Instant::now();
        let shelf = Checkpoints::of(self.view.folder.path());
        let id = progress.id();
        let put = self.put(&shelf, progress, round);
        let state = &mut self.trained.state;
        (state.last_attempt, state.anomaly_asks) = (Some(started), false);
        match put {
            Ok(size_bytes) => {
                shelf.tidy(progress);
                self.outbox.push(Event::run(CheckpointSaved {
                    path: Checkpoints::relative_path(id),
                    round: id.round,
                    step: id.is_inside_round().then_some(id.step),
                    reason,
                    size_bytes,
                }));
                self.hub.flush(&mut self.outbox);
                (self.trained.state.failure, self.trained.state.failures) = (None, 0);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "checkpoint {id} could not be written; the older ones are unchanged");
                self.trained.state.failure = Some(error.to_string());
                self.trained.state.failures += 1;
                false
            }
        }
    }

    fn put(
        &mut self,
        shelf: &Checkpoints,
        progress: &mut Progress,
        round: Option<&UnfinishedRound>,
    ) -> Result<u64, Failure> {
        // A directory that has replaced the run directory isn't the run's to write into.
        self.view.find_directory()?;
        self.view.is_not_succeeded()?;
        // Events that the checkpoint counts as recorded must be on disk before it.
        if !self.hub.settle() {
            progress.recorded = None;
        }
        let save = |folder: &Path| {
            self.trained.save(folder)?;
            round.map_or(Ok(()), |round| round.write(folder))
        };
        Ok(shelf.put(progress, save)?)
    }
}

/// The run's directory is missing or was replaced, so nothing that the run learns can be saved.
#[derive(Debug, thiserror::Error)]
#[error(
    "the run directory {0} was deleted, moved or replaced while the run was played; nothing more can be recorded in it"
)]
pub struct RunDirectoryLost(PathBuf);
