//! Looking and capturing, as systems (spec 06 A2, A4, X7). Envs are visited in index order, so events are too.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;

use super::*;
use crate::clock::RunClock;
use crate::data::PackLayout;
use crate::env::{EnvDevice, EnvStream, EpisodeStats, Experiment, HostModel, SeedSlots, StepStatus, ValMetrics};
use crate::growth::SeedStage;
use crate::health::{Failure, InEnv};
use crate::seed::SeedRecord;
use crate::telemetry::{
    AlarmVerdict, Event, GovernorAlarm, GovernorSnapshot, Num, Payload, SnapshotAction, SnapshotPlace, TelemetryOutbox,
};
use crate::torch::TorchError;
use crate::training::EnvAccumulators;
use crate::validation::StepResult;

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
pub struct Watch<'w> {
    pub clock: Res<'w, RunClock>,
    pub experiment: Res<'w, Experiment>,
    outbox: ResMut<'w, TelemetryOutbox>,
}

impl Watch<'_> {
    pub fn tell(&mut self, id: &EnvId, payload: impl Into<Payload>) {
        let context = self.experiment.context(id, &self.clock);
        self.outbox.push(Event::env(context, payload));
    }

    fn tell_snapshot(&mut self, id: &EnvId, action: SnapshotAction, trigger: SnapshotTrigger, taken: Captured) {
        let Captured { bytes, place } = taken;
        self.tell(
            id,
            GovernorSnapshot {
                action,
                trigger,
                bytes,
                placement: place,
            },
        );
    }
}

/// A new watchdog for every episode, with the fresh host as the first known good state (spec 06 R4).
pub fn snapshot_initial(mut envs: Query<CapturedEnv>, mut watch: Watch) -> Result<(), Failure> {
    let is_enabled = watch.experiment.scenario.governor.enabled;
    for mut env in sorted(&mut envs) {
        *env.governor = Governor::new(is_enabled);
        if is_enabled {
            capture(&mut env, SnapshotTrigger::Initial, &mut watch)?;
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

/// Judges every env's step, before anything of it is captured or seen (spec 06 A2).
pub fn governor_check(
    mut envs: Query<(
        &EnvId,
        &StepStatus,
        &StepResult,
        &ValMetrics,
        &mut Governor,
        &mut Snapshots,
        &mut RollbackVerdict,
    )>,
    mut watch: Watch,
) -> Result<(), Failure> {
    let config = watch.experiment.scenario.governor;
    let thresholds = Thresholds::new(&config, (watch.experiment.task.classes as f64).ln());
    let mut envs: Vec<_> = envs.iter_mut().collect();
    envs.sort_unstable_by_key(|(id, ..)| id.index);
    for (id, status, result, val, governor, store, rollback) in &mut envs {
        rollback.0 = None;
        let Some(numbers) = result.0.as_ref().filter(|_| status.is_active()) else {
            continue;
        };
        weigh_count(id, governor, numbers.param_nonfinite, &mut watch)?;
        if let Some(trigger) = governor.trust_finite_capture(&config.snapshot) {
            store.0.get().promote();
            watch.tell_snapshot(id, SnapshotAction::Promote, trigger, NOTHING);
        }
        let verdict = *governor.judge(val.loss, &thresholds);
        let Some(alarm) = verdict.alarm() else { continue };
        watch.tell(id, alarm_event(alarm, &verdict, &thresholds));
        if let Some(trigger) = governor.discard_probation() {
            watch.tell_snapshot(id, SnapshotAction::Discard, trigger, NOTHING);
        }
    }
    Ok(())
}

/// Promotions and discards move no bytes.
const NOTHING: Captured = Captured {
    bytes: 0,
    place: SnapshotPlace::Device,
};

/// What the count of the last capture means: a capture with values that are no numbers is worth nothing.
fn weigh_count(id: &EnvId, governor: &mut Governor, nonfinite: u64, watch: &mut Watch) -> Result<(), Failure> {
    if nonfinite == 0 {
        return Ok(());
    }
    match governor.discard_probation() {
        Some(trigger) => {
            tracing::warn!(
                "env {}: a capture held {nonfinite} values that are no numbers",
                id.index
            );
            watch.tell_snapshot(id, SnapshotAction::Discard, trigger, NOTHING);
            Ok(())
        }
        None => {
            let step = governor.snapshots().known_good().moment.step;
            Err(Failure::from(GovernorError::NonFiniteState { step, count: nonfinite }).in_env(id.index))
        }
    }
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

/// Promotes and captures as the rule orders; host work waits for nothing (spec 06 A4).
pub fn governor_snapshot(mut envs: Query<CapturedEnv>, mut watch: Watch) -> Result<(), Failure> {
    let policy = watch.experiment.scenario.governor.snapshot;
    for mut env in sorted(&mut envs) {
        if !env.status.participates() || !env.governor.may_capture() {
            continue;
        }
        let now = moment(&env, watch.clock.step());
        let orders = env.governor.after_healthy_step(&policy, &now);
        if let Some(trigger) = orders.promote {
            env.store.0.get().promote();
            watch.tell_snapshot(env.id, SnapshotAction::Promote, trigger, NOTHING);
        }
        if let Some(trigger) = orders.capture {
            capture(&mut env, trigger, &mut watch)?;
        }
    }
    Ok(())
}

/// Captures every env that committed a seed in this step: after its tick and before the next batch, so that no
/// rollback can ever set an older host beside a newer seed (spec 06 X7).
pub fn commit_snapshot(mut envs: Query<CapturedEnv>, mut watch: Watch) -> Result<(), Failure> {
    let step = watch.clock.step();
    for mut env in sorted(&mut envs) {
        if !env.status.participates() {
            continue;
        }
        env.governor.last_action_step = Some(step);
        let is_new = |seed: &SeedRecord| seed.stage == SeedStage::Fossilized && seed.stage_entered_step == step;
        let has_committed = env.slots.records().flatten().any(is_new);
        if has_committed && env.governor.is_enabled {
            let now = moment(&env, step);
            env.governor.commit(&now);
            capture(&mut env, SnapshotTrigger::Commit, &mut watch)?;
            env.store.0.get().promote();
        }
    }
    Ok(())
}

fn sorted<'a>(envs: &'a mut Query<CapturedEnv>) -> Vec<CapturedEnvItem<'a, 'a>> {
    let mut envs: Vec<_> = envs.iter_mut().collect();
    envs.sort_unstable_by_key(|env| env.id.index);
    envs
}

fn moment(env: &CapturedEnvItem, step: u32) -> Moment {
    let (best_accuracy_percent, best_step) = env.stats.best_with(step, env.val.accuracy_percent);
    Moment {
        step,
        val: Some(*env.val),
        best_accuracy_percent,
        best_step,
        history: env.governor.monitor().history().clone(),
    }
}

fn capture(env: &mut CapturedEnvItem, trigger: SnapshotTrigger, watch: &mut Watch) -> Result<(), Failure> {
    let placement = watch.experiment.scenario.governor.placement;
    let mut take = || -> Result<Captured, TorchError> {
        let _guard = env.stream.0.get().enter()?;
        let live = LiveState::of(&**env.host.0.get(), &mut env.slots);
        env.store.0.get().capture(live, env.device.0, placement)
    };
    let taken = take().in_env(env.id.index)?;
    watch.tell_snapshot(env.id, SnapshotAction::Capture, trigger, taken);
    Ok(())
}
