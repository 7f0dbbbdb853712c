//! Checkpoints (spec 06 §13): what a run has learnt so far, on disk at every round boundary.
//!
//! Everything inside a round follows from seed and round, so a checkpoint holds no envs and no random state: how far the
//! run has come (`run.ron`), its controller (`policy/`) and what improves it (`learner.ron`, `optim.safetensors`). It
//! appears whole under its name or not at all. `Work::WriteCheckpoint` ends `Startup` and every round that is played to
//! its end; `Work::Restore` puts a resumed run where its checkpoint was.

use std::path::Path;
use std::time::Instant;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;

use super::announce::{RunFolder, RunRequest};
use super::record::RoundHistory;
use super::saved_learner::{load_learner, save_learner};
use super::shelf::{CheckpointShelf, Progress, Record};
use super::stop::StopSignal;
use crate::controller::ActiveController;
use crate::env::{Experiment, RunClock, round_is_complete};
use crate::health::{EngineError, Failure, Position, record_failure};
use crate::learner::PolicyLearner;
use crate::scenario::Scenario;
use crate::schedule::{RoundEnd, Startup, Work};
use crate::telemetry::{CheckpointReason, CheckpointSaved, Event, Num, TelemetryHub, TelemetryOutbox};

/// Writes checkpoints of recorded runs and goes on from them.
pub struct CheckpointPlugin;

impl Plugin for CheckpointPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Keeper>()
            .add_systems(
                Startup,
                restore
                    .pipe(record_failure)
                    .in_set(Work::Restore)
                    .run_if(resource_exists::<RoundHistory>),
            )
            .add_systems(Startup, write_checkpoint.in_set(Work::WriteCheckpoint).run_if(begins))
            .add_systems(
                RoundEnd,
                write_checkpoint
                    .in_set(Work::WriteCheckpoint)
                    .run_if(round_is_complete)
                    .run_if(resource_exists::<RunFolder>),
            );
    }
}

/// What the run remembers of its checkpoints.
#[derive(Resource, Debug, Default)]
pub struct Keeper {
    /// The best rolling accuracy so far, and the checkpoint that has it.
    best: Option<Record>,
    /// Why the newest state is not on disk.
    failure: Option<String>,
}

impl Keeper {
    /// Why the newest checkpoint that was due is not on disk; `None` if it is.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

/// A run that is resumed has its checkpoint already.
fn begins(request: Option<Res<RunRequest>>) -> bool {
    request.is_some_and(|request| request.resume.is_none())
}

/// All that lasts from round to round.
#[derive(SystemParam)]
pub struct Lasting<'w> {
    controller: ResMut<'w, ActiveController>,
    learner: Option<ResMut<'w, PolicyLearner>>,
    history: ResMut<'w, RoundHistory>,
    keeper: ResMut<'w, Keeper>,
}

impl Lasting<'_> {
    fn save(&mut self, folder: &Path) -> Result<(), Failure> {
        self.controller.0.get().save(&folder.join(POLICY_FOLDER))?;
        match &mut self.learner {
            Some(learner) => save_learner(folder, learner.learner.get()),
            None => Ok(()),
        }
    }

    fn load(&mut self, folder: &Path) -> Result<(), Failure> {
        self.controller.0.get().load(&folder.join(POLICY_FOLDER))?;
        match &mut self.learner {
            Some(learner) => load_learner(folder, learner.learner.get()),
            None => Ok(()),
        }
    }

    /// A rollout that is collected over several rounds exists in memory alone.
    fn is_between_rollouts(&self, next_round: u32, scenario: &Scenario) -> bool {
        self.learner.is_none() || next_round.is_multiple_of(scenario.learner.episodes_per_update)
    }

    fn updates(&mut self) -> Option<u64> {
        let learner = self.learner.as_mut()?;
        Some(learner.learner.get().counters().updates)
    }
}

/// Folder of the controller inside a checkpoint: what serves inference.
const POLICY_FOLDER: &str = "policy";

/// Puts a resumed run where its checkpoint was: nothing on disk changes before that has worked.
fn restore(request: Option<Res<RunRequest>>, mut lasting: Lasting) -> Result<(), EngineError> {
    let Some(point) = request.as_ref().and_then(|request| request.resume.as_ref()) else {
        return Ok(());
    };
    lasting.load(&point.checkpoint).map_err(|failure| EngineError {
        phase: "resume",
        position: Position::default(),
        failure,
    })?;
    lasting.history.0.clone_from(&point.progress.history);
    lasting.keeper.best = point.progress.best;
    Ok(())
}

/// Where the run stands.
#[derive(SystemParam)]
pub struct Standing<'w> {
    experiment: Res<'w, Experiment>,
    clock: Res<'w, RunClock>,
    folder: Res<'w, RunFolder>,
    stop: Res<'w, StopSignal>,
}

impl Standing<'_> {
    /// Rounds played to their end.
    fn next_round(&self) -> u32 {
        let played = self.clock.position().round.map(|round| round + 1);
        played.unwrap_or(self.experiment.rounds.start)
    }

    /// Why a checkpoint is due, if one is.
    fn reason(&self, next_round: u32, is_best: bool) -> Option<CheckpointReason> {
        let scenario = &self.experiment.scenario;
        if next_round == self.experiment.rounds.end {
            Some(CheckpointReason::Exit)
        } else if self.stop.is_requested() {
            Some(CheckpointReason::Signal)
        } else if is_best {
            Some(CheckpointReason::Best)
        } else {
            let is_due = next_round.is_multiple_of(scenario.run.checkpoint_every);
            is_due.then_some(CheckpointReason::Periodic)
        }
    }

    fn progress(&self, next_round: u32, next_seq: u64, lasting: &Lasting) -> Progress {
        let Experiment { scenario, layout, .. } = &*self.experiment;
        Progress {
            format: Progress::FORMAT,
            engine: env!("CARGO_PKG_VERSION").into(),
            scenario_hash: self.folder.0.scenario_hash().into(),
            rounds: scenario.run.rounds,
            next_round,
            next_seq,
            n_envs: scenario.run.n_envs,
            slots: layout.slots().iter().map(|spec| spec.slot.to_string()).collect(),
            controller: scenario.policy.controller.clone(),
            history: lasting.history.0.clone(),
            best: lasting.keeper.best,
        }
    }
}

/// Writes what lasts, if it is due. A checkpoint that cannot be written leaves the older ones as they are; the run goes
/// on and says so at its end.
fn write_checkpoint(
    mut lasting: Lasting,
    standing: Standing,
    mut hub: ResMut<TelemetryHub>,
    mut outbox: ResMut<TelemetryOutbox>,
) {
    let next_round = standing.next_round();
    if !lasting.is_between_rollouts(next_round, &standing.experiment.scenario) {
        return;
    }
    // Damage done on purpose says nothing about what is good.
    let is_candidate = standing.experiment.scenario.faults.is_empty();
    let rolling_accuracy = lasting.history.rolling_accuracy();
    let record = rolling_accuracy
        .filter(|_| is_candidate)
        .map(|accuracy| Record { next_round, accuracy })
        .filter(|record| lasting.keeper.best.is_none_or(|best| record.accuracy > best.accuracy));
    let Some(reason) = standing.reason(next_round, record.is_some()) else {
        return;
    };
    let started = Instant::now();
    lasting.keeper.best = record.or(lasting.keeper.best);
    // What the checkpoint counts as told has to be on disk before it is.
    hub.settle();
    let progress = standing.progress(next_round, hub.next_seq(), &lasting);
    let shelf = CheckpointShelf::of(standing.folder.0.path());
    let mut write = || shelf.put(&progress, |folder| lasting.save(folder));
    let written = write().or_else(|error| {
        tracing::warn!(%error, "a checkpoint could not be written; trying once more");
        write()
    });
    match written {
        Ok(size_bytes) => {
            lasting.keeper.failure = None;
            shelf.tidy(&progress, standing.experiment.scenario.run.keep_last);
            outbox.push(Event::run(CheckpointSaved {
                path: CheckpointShelf::relative_path(next_round),
                round: next_round,
                update: lasting.updates(),
                rolling_accuracy: rolling_accuracy.map(Num),
                reason,
                size_bytes,
                wall_ms: Num(started.elapsed().as_secs_f64() * 1e3),
            }));
            hub.flush(&mut outbox);
        }
        Err(error) => {
            tracing::warn!(%error, "no checkpoint of round {next_round}; the older ones are as they were");
            lasting.keeper.failure = Some(error.to_string());
        }
    }
}
