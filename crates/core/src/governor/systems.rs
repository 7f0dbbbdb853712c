//! Looking and capturing, as systems. Envs are visited in index order, so events are too.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;

use super::detector::{Alarm, LossVerdict, MIN_PANICS};
use super::snapshot_rule::SnapshotInput;
use super::state::{Governor, GovernorError, RollbackVerdict};
use super::store::{CapturedNetwork, Snapshots};
use crate::clock::RunClock;
use crate::env::unfinished::name_of;
use crate::env::{
    EnvBackend, EnvId, EnvStream, Experiment, GrowingEnv, HostModel, HostOptimizer, StepStatus, ValMetrics,
};
use crate::growth::SeedStage;
use crate::health::{Failure, InEnv};
use crate::seed::SeedRecord;
use crate::telemetry::{AlarmVerdict, Event, GovernorAlarm, Num, Payload, TelemetryOutbox};
use crate::torch::TorchError;
use crate::training::{EnvAccumulators, EnvLossScaler, PackLayout, StepResult};
use crate::unfinished::UnfinishedRound;

/// An env's store in a checkpoint inside a round.
const SNAPSHOTS: &str = "snapshots";

/// Everything of an env that captures and rollbacks touch.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct GovernedEnv {
    pub(super) growing: GrowingEnv,
    pub(super) status: &'static mut StepStatus,
    result: &'static StepResult,
    pub(super) val: &'static ValMetrics,
    pub(super) host: &'static mut HostModel,
    pub(super) optimizer: &'static mut HostOptimizer,
    pub(super) governor: &'static mut Governor,
    pub(super) store: &'static mut Snapshots,
    pub(super) rollback: &'static mut RollbackVerdict,
    pub(super) scaler: &'static mut EnvLossScaler,
}

/// Resources of the governor's systems in addition to an env.
#[derive(SystemParam)]
pub struct GovernorContext<'w> {
    pub clock: Res<'w, RunClock>,
    pub experiment: Res<'w, Experiment>,
    outbox: ResMut<'w, TelemetryOutbox>,
}

impl GovernorContext<'_> {
    /// Adds an event of the env.
    pub fn push(&mut self, id: &EnvId, payload: impl Into<Payload>) {
        let context = self.experiment.context(id, &self.clock);
        self.outbox.push(Event::env(context, payload));
    }
}

/// A new watchdog for every episode, with the fresh host as the first known good state.
pub fn snapshot_initial(mut envs: Query<GovernedEnv>, experiment: Res<Experiment>) -> Result<(), Failure> {
    let is_enabled = experiment.scenario.governor.enabled;
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        *env.governor = Governor {
            is_enabled,
            ..Governor::default()
        };
        if is_enabled {
            capture(&mut env)?;
            env.store.0.get().promote();
        }
    }
    Ok(())
}

/// Puts the counts of the captures since the last sync into the read packs: they cost no extra read.
pub fn carry_snapshot_counts(
    mut envs: Query<(
        &EnvId,
        &StepStatus,
        &mut EnvStream,
        &mut EnvAccumulators,
        &mut Snapshots,
    )>,
) -> Result<(), Failure> {
    for (id, status, mut stream, mut sums, mut store) in &mut envs {
        let Some(count) = store.0.get().take_count().filter(|_| status.is_active()) else {
            continue;
        };
        let mut carry = || -> Result<(), TorchError> {
            let _guard = stream.0.get().enter()?;
            let column = PackLayout::PARAM_NONFINITE;
            Ok(sums.0.get().columns(column..column + 1).f_copy_(count)?)
        };
        carry().in_env(id.index)?;
    }
    Ok(())
}

/// Judges every env's step, before anything of it is captured or seen.
pub fn governor_check(mut envs: Query<GovernedEnv>, mut context: GovernorContext) -> Result<(), Failure> {
    let random = (context.experiment.task.classes as f64).ln();
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        env.rollback.0 = None;
        let Some(numbers) = env.result.0.as_ref().filter(|_| env.status.is_active()) else {
            continue;
        };
        check_capture(&mut env, numbers.param_nonfinite)?;
        let step = context.clock.step();
        env.governor.note_seeds(step, env.growing.slots.records().flatten());
        env.governor.judge(env.val.loss, random);
        let Some(alarm) = env.governor.verdict.alarm().copied() else {
            continue;
        };
        let verdict = match env.governor.verdict {
            LossVerdict::Panic(_) if env.governor.accepts() => AlarmVerdict::Accepted,
            LossVerdict::Panic(_) => AlarmVerdict::Panic,
            LossVerdict::Healthy | LossVerdict::Suspect(_) => AlarmVerdict::Suspect,
        };
        context.push(env.growing.id, alarm_event(&alarm, verdict));
        env.governor.snapshots.discard();
        if verdict == AlarmVerdict::Accepted {
            env.governor.accept(alarm.loss);
        }
    }
    Ok(())
}

/// Drops a capture with values that aren't finite, or fails the run if it is the only one known good.
fn check_capture(env: &mut GovernedEnvItem, nonfinite: u64) -> Result<(), Failure> {
    if nonfinite == 0 {
        return Ok(());
    }
    let index = env.growing.id.index;
    if !env.governor.snapshots.discard() {
        let step = env.governor.snapshots.known_good().step;
        return Err(GovernorError::NonFiniteState { step, count: nonfinite }).in_env(index);
    }
    tracing::warn!("env {index}: a capture held {nonfinite} values that aren't finite");
    Ok(())
}

fn alarm_event(alarm: &Alarm, verdict: AlarmVerdict) -> GovernorAlarm {
    GovernorAlarm {
        kind: alarm.kind,
        verdict,
        loss: Num(alarm.loss),
        consecutive: alarm.consecutive,
        required: MIN_PANICS,
    }
}

/// Promotes and captures as the rule orders. Host work waits for nothing.
pub fn governor_snapshot(mut envs: Query<GovernedEnv>, clock: Res<RunClock>) -> Result<(), Failure> {
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        if !env.status.participates() || !env.governor.may_capture() {
            continue;
        }
        let now = moment(&env, clock.step());
        let orders = env.governor.snapshots.healthy(&now);
        if orders.promote {
            env.store.0.get().promote();
        }
        if orders.capture {
            capture(&mut env)?;
        }
    }
    Ok(())
}

/// Captures every env that committed a seed in this step: after its tick and before the next batch, so that no
/// rollback can ever combine an older host with a newer seed.
pub fn commit_snapshot(mut envs: Query<GovernedEnv>, clock: Res<RunClock>) -> Result<(), Failure> {
    let step = clock.step();
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        if !env.status.participates() {
            continue;
        }
        let is_new = |seed: &SeedRecord| seed.stage == SeedStage::Committed && seed.stage_entered_step == step;
        let has_committed = env.growing.slots.records().flatten().any(is_new);
        if has_committed && env.governor.is_enabled {
            let now = moment(&env, step);
            env.governor.snapshots.commit(&now);
            capture(&mut env)?;
            env.store.0.get().promote();
        }
    }
    Ok(())
}

fn moment(env: &GovernedEnvItem, step: u32) -> SnapshotInput {
    let (best_accuracy_percent, best_step) = env.growing.stats.best_with(step, env.val.accuracy_percent);
    SnapshotInput {
        step,
        val: Some(*env.val),
        best_accuracy_percent,
        best_step,
        history: env.governor.monitor.history.clone(),
    }
}

fn capture(env: &mut GovernedEnvItem) -> Result<(), Failure> {
    let growing = &mut env.growing;
    let mut take = || -> Result<(), TorchError> {
        let _guard = growing.stream.0.get().enter()?;
        let network = CapturedNetwork::of(&**env.host.0.get(), &mut growing.slots);
        env.store.0.get().capture(network, growing.backend.0.device)
    };
    take().in_env(growing.id.index)
}

/// For a checkpoint inside the round.
pub fn save_snapshots(
    mut envs: Query<(&EnvId, &Governor, &mut EnvStream, &mut Snapshots)>,
    mut round: ResMut<UnfinishedRound>,
) -> Result<(), Failure> {
    for (id, governor, mut stream, mut store) in &mut envs {
        let _guard = stream.0.get().enter()?;
        let has_probation = governor.snapshots.has_probation();
        let saved = store.0.get().save(&name_of(id, SNAPSHOTS), has_probation, &mut round);
        saved.in_env(id.index)?;
    }
    Ok(())
}

/// Restores the snapshots that [`save_snapshots`] has kept.
pub fn restore_snapshots(
    mut envs: Query<(&EnvId, &EnvBackend, &mut EnvStream, &mut Snapshots)>,
    round: Res<UnfinishedRound>,
) -> Result<(), Failure> {
    for (id, backend, mut stream, mut store) in &mut envs {
        let _guard = stream.0.get().enter()?;
        let restored = store
            .0
            .get()
            .restore_kept(&name_of(id, SNAPSHOTS), &round, backend.0.device);
        restored.in_env(id.index)?;
    }
    Ok(())
}
