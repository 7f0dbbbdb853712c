//! Checkpoints inside a round, for long rounds: everything that a checkpoint between rounds holds, and the state that the envs
//! and the rollout carry from step to step. A run resumed from one continues as if it had never stopped.
//!
//! `Work::PlanCheckpoint` requests one. The works of [`SaveRound`](crate::schedule::SaveRound) collect the state of the round,
//! and the last of them writes it to disk. When a run resumes inside a round, the round begins as any other, and the works of
//! [`RestoreRound`](crate::schedule::RestoreRound) restore the state.

use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;

use super::resume::ResumePoint;
use super::writer::{CheckpointState, CheckpointWriter};
use crate::clock::RunClock;
use crate::env::{EpisodeStats, Experiment};
use crate::run::StopSignal;
use crate::telemetry::TelemetryOutbox;
use crate::unfinished::UnfinishedRound;

/// Time from the last checkpoint of any kind to one inside a round. It bounds the loss if a machine loses its power.
const INTERVAL: Duration = Duration::from_secs(600);

/// Requests a checkpoint if one is due. It requests none at the end of a round, because the next checkpoint is between rounds.
pub(crate) fn plan_checkpoint(
    mut commands: Commands,
    envs: Query<&EpisodeStats>,
    mut state: ResMut<CheckpointState>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    stop: Res<StopSignal>,
) {
    let age = state.last_attempt.get_or_insert_with(Instant::now).elapsed();
    let has_steps_left = envs.iter().any(|stats| stats.end.is_none());
    let every = experiment.scenario.run.checkpoint_every_steps;
    let is_asked_for = state.anomaly_asks || stop.is_requested();
    if has_steps_left && (is_asked_for || is_due(every, clock.step(), age)) {
        commands.insert_resource(UnfinishedRound::default());
    }
}

/// Returns whether a checkpoint is due after `step`. `age` is the time since the last one.
fn is_due(every: Option<u32>, step: u32, age: Duration) -> bool {
    age >= INTERVAL || every.is_some_and(|steps| step.is_multiple_of(steps))
}

/// Writes the collected state of the round to disk. If that fails, the run continues: the previous checkpoint is unchanged.
pub(crate) fn write_round(mut commands: Commands, round: Res<UnfinishedRound>, mut writer: CheckpointWriter) {
    let reason = writer.reason_inside();
    writer.write_inside(&round, reason);
    commands.remove_resource::<UnfinishedRound>();
}

/// Resumes the round after the step of its checkpoint. Discards the events of the round's beginning: they are in the record
/// already.
pub(crate) fn enter_round(
    mut commands: Commands,
    point: Res<ResumePoint>,
    mut clock: ResMut<RunClock>,
    mut outbox: ResMut<TelemetryOutbox>,
) {
    clock.resume_after(point.progress.step);
    outbox.discard();
    commands.remove_resource::<UnfinishedRound>();
}

#[cfg(test)]
mod tests;
