//! Looking and capturing, as systems. Envs are visited in index order, so events are too.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;

use super::detector::{Alarm, Thresholds, Verdict};
use super::error::GovernorError;
use super::snapshot_rule::Moment;
use super::state::{Governor, RollbackVerdict};
use super::store::{Captured, CapturedNetwork, Snapshots};
use crate::clock::RunClock;
use crate::data::PackLayout;
use crate::env::{EnvDevice, EnvId, EnvStream, EpisodeStats, Experiment, HostModel, SeedSlots, StepStatus, ValMetrics};
use crate::growth::SeedStage;
use crate::health::{Failure, InEnv};
use crate::seed::SeedRecord;
use crate::telemetry::{
    AlarmVerdict, Event, GovernorAlarm, GovernorCounts, GovernorSnapshot, Num, Payload, SnapshotAction, SnapshotPlace,
    SnapshotTrigger, TelemetryOutbox,
};
use crate::torch::TorchError;
use crate::training::{EnvAccumulators, StepResult};

/// Everything of an env that captures touch.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct CapturedEnv {
    id: &'static EnvId,
    device: &'static EnvDevice,
    status: &'static StepStatus,
    val: &'static ValMetrics,
    stats: &'static EpisodeStats,
    stream: &'static mut EnvStream,
    host: &'static mut HostModel,
    slots: &'static mut SeedSlots,
    governor: &'static mut Governor,
    store: &'static mut Snapshots,
}

/// What the governor's systems need besides an env.
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

    /// Counts and records what became of a state. The fresh host of an episode is not counted.
    fn push_snapshot(
        &mut self,
        id: &EnvId,
        counts: &mut GovernorCounts,
        action: SnapshotAction,
        trigger: SnapshotTrigger,
        taken: Captured,
    ) {
        match action {
            SnapshotAction::Capture => counts.snapshot_captures += u32::from(trigger != SnapshotTrigger::Initial),
            SnapshotAction::Promote => counts.snapshot_promotions += 1,
            SnapshotAction::Discard => counts.snapshot_discards += 1,
        }
        let Captured { bytes, place } = taken;
        self.push(
            id,
            GovernorSnapshot {
                action,
                trigger,
                bytes,
                placement: place,
            },
        );
    }

    /// Drops the capture on probation, if there is one.
    fn discard(&mut self, id: &EnvId, governor: &mut Governor) -> bool {
        let discarded = governor.snapshots.discard();
        if let Some(trigger) = discarded {
            self.push_snapshot(id, &mut governor.counts, SnapshotAction::Discard, trigger, NOTHING);
        }
        discarded.is_some()
    }
}

/// A new watchdog for every episode, with the fresh host as the first known good state.
pub fn snapshot_initial(mut envs: Query<CapturedEnv>, mut context: GovernorContext) -> Result<(), Failure> {
    let is_enabled = context.experiment.scenario.governor.enabled;
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        *env.governor = Governor::new(is_enabled);
        if is_enabled {
            capture(&mut env, SnapshotTrigger::Initial, &mut context)?;
            env.store.0.get().promote();
        }
    }
    Ok(())
}

/// Puts the counts of the captures since the last sync into the read packs: they cost no read of their own.
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

/// What `governor_check` reads and writes of an env.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct JudgedEnv {
    id: &'static EnvId,
    status: &'static StepStatus,
    result: &'static StepResult,
    val: &'static ValMetrics,
    governor: &'static mut Governor,
    store: &'static mut Snapshots,
    rollback: &'static mut RollbackVerdict,
}

/// Judges every env's step, before anything of it is captured or seen.
pub fn governor_check(mut envs: Query<JudgedEnv>, mut context: GovernorContext) -> Result<(), Failure> {
    let config = context.experiment.scenario.governor;
    let thresholds = Thresholds::new(&config, (context.experiment.task.classes as f64).ln());
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        env.rollback.0 = None;
        let Some(numbers) = env.result.0.as_ref().filter(|_| env.status.is_active()) else {
            continue;
        };
        let (id, governor) = (env.id, &mut *env.governor);
        check_capture(id, governor, numbers.param_nonfinite, &mut context)?;
        if let Some(trigger) = governor.snapshots.found_finite(&config.snapshot) {
            env.store.0.get().promote();
            context.push_snapshot(id, &mut governor.counts, SnapshotAction::Promote, trigger, NOTHING);
        }
        governor.judge(env.val.loss, &thresholds);
        if let Some(alarm) = governor.verdict.alarm() {
            context.push(id, alarm_event(alarm, &governor.verdict, &thresholds));
            context.discard(id, governor);
        }
    }
    Ok(())
}

/// Promotions and discards move no bytes.
const NOTHING: Captured = Captured {
    bytes: 0,
    place: SnapshotPlace::Device,
};

/// A capture with values that are no numbers is dropped, or fails the run if it is the only one known good.
fn check_capture(
    id: &EnvId,
    governor: &mut Governor,
    nonfinite: u64,
    context: &mut GovernorContext,
) -> Result<(), Failure> {
    if nonfinite == 0 {
        return Ok(());
    }
    if !context.discard(id, governor) {
        let step = governor.snapshots.known_good().moment.step;
        return Err(GovernorError::NonFiniteState { step, count: nonfinite }).in_env(id.index);
    }
    tracing::warn!(
        "env {}: a capture held {nonfinite} values that are no numbers",
        id.index
    );
    Ok(())
}

fn alarm_event(alarm: &Alarm, verdict: &Verdict, thresholds: &Thresholds) -> GovernorAlarm {
    GovernorAlarm {
        kind: alarm.kind,
        verdict: match verdict {
            Verdict::Panic(_) => AlarmVerdict::Panic,
            Verdict::Healthy | Verdict::Suspect(_) => AlarmVerdict::Suspect,
        },
        loss: Num(alarm.loss),
        threshold: alarm.threshold.map(Num),
        mean: alarm.healthy.map(|(mean, _)| Num(mean)),
        std: alarm.healthy.map(|(_, std)| Num(std)),
        consecutive: alarm.consecutive,
        required: thresholds.required(),
    }
}

/// Promotes and captures as the rule orders; host work waits for nothing.
pub fn governor_snapshot(mut envs: Query<CapturedEnv>, mut context: GovernorContext) -> Result<(), Failure> {
    let policy = context.experiment.scenario.governor.snapshot;
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        if !env.status.participates() || !env.governor.may_capture() {
            continue;
        }
        let now = moment(&env, context.clock.step());
        let orders = env.governor.snapshots.healthy(&policy, &now);
        if let Some(trigger) = orders.promote {
            env.store.0.get().promote();
            context.push_snapshot(
                env.id,
                &mut env.governor.counts,
                SnapshotAction::Promote,
                trigger,
                NOTHING,
            );
        }
        if let Some(trigger) = orders.capture {
            capture(&mut env, trigger, &mut context)?;
        }
    }
    Ok(())
}

/// Captures every env that committed a seed in this step: after its tick and before the next batch, so that no
/// rollback can ever set an older host beside a newer seed.
pub fn commit_snapshot(mut envs: Query<CapturedEnv>, mut context: GovernorContext) -> Result<(), Failure> {
    let step = context.clock.step();
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        if !env.status.participates() {
            continue;
        }
        env.governor.last_action_step = Some(step);
        let is_new = |seed: &SeedRecord| seed.stage == SeedStage::Fossilized && seed.stage_entered_step == step;
        let has_committed = env.slots.records().flatten().any(is_new);
        if has_committed && env.governor.is_enabled {
            let now = moment(&env, step);
            env.governor.snapshots.commit(&now);
            capture(&mut env, SnapshotTrigger::Commit, &mut context)?;
            env.store.0.get().promote();
        }
    }
    Ok(())
}

fn moment(env: &CapturedEnvItem, step: u32) -> Moment {
    let (best_accuracy_percent, best_step) = env.stats.best_with(step, env.val.accuracy_percent);
    Moment {
        step,
        val: Some(*env.val),
        best_accuracy_percent,
        best_step,
        history: env.governor.monitor.history().clone(),
    }
}

fn capture(env: &mut CapturedEnvItem, trigger: SnapshotTrigger, context: &mut GovernorContext) -> Result<(), Failure> {
    let placement = context.experiment.scenario.governor.placement;
    let mut take = || -> Result<Captured, TorchError> {
        let _guard = env.stream.0.get().enter()?;
        let network = CapturedNetwork::of(&**env.host.0.get(), &mut env.slots);
        env.store.0.get().capture(network, env.device.0, placement)
    };
    let taken = take().in_env(env.id.index)?;
    context.push_snapshot(
        env.id,
        &mut env.governor.counts,
        SnapshotAction::Capture,
        trigger,
        taken,
    );
    Ok(())
}
