//! The rollback of an env, and of that env only.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::detector::prune_reason;
use super::snapshot_rule::SnapshotInput;
use super::state::{GovernorError, Rollback, RollbackVerdict};
use super::systems::{GovernedEnv, GovernedEnvItem, GovernorContext};
use crate::env::{
    EnvId, EpisodeEnding, EpisodeStats, GrowingEnvItem, GrowthContext, SeedSlots, StepStatus, ValMetrics,
};
use crate::growth::{Initiator, SeedStage};
use crate::health::{Failure, InEnv};
use crate::seed::{PruneOrder, SeedRecord, prune_now};
use crate::telemetry::{EndReason, GovernorRollback};

/// Raw reward that a rollback costs.
const DEATH_PENALTY: f64 = 10.0;

/// Rolls every panicking env back.
pub fn governor_rollback(mut envs: Query<GovernedEnv>, mut growth: GrowthContext) -> Result<(), Failure> {
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        if env.status.is_active() && env.governor.demands_rollback() {
            roll_back(&mut env, &mut growth).in_env(env.growing.id.index)?;
        }
    }
    Ok(())
}

/// Restores tensors, prunes the seeds that are to go, empties the optimizers of what was restored, then sets the env's
/// plain data back.
fn roll_back(env: &mut GovernedEnvItem, growth: &mut GrowthContext) -> Result<(), Failure> {
    let Some(alarm) = env.governor.verdict.alarm().copied() else {
        return Ok(());
    };
    let limit = growth.experiment.scenario.governor.max_rollbacks_per_episode;
    let blamed = env.governor.blames();
    let is_in_vain = env.governor.would_repeat_itself();
    let growing = &mut env.growing;
    {
        let _guard = growing.stream.0.get().enter()?;
        env.store.0.get().restore(&**env.host.0.get(), &mut growing.slots)?;
    }
    let order = PruneOrder {
        reason: prune_reason(alarm.kind),
        initiator: Initiator::Governor,
    };
    let pruned = prune_live_seeds(growing, order, growth)?;
    {
        let _guard = growing.stream.0.get().enter()?;
        let is_restored = |seed: Option<&SeedRecord>| seed.is_some_and(|seed| seed.stage == SeedStage::Committed);
        let slots = growing.slots.records().zip(&mut growing.optimizers.0);
        let committed = slots.filter_map(|(seed, optimizer)| optimizer.as_mut().filter(|_| is_restored(seed)));
        let seeds = committed.map(|optimizer| optimizer.get());
        for optimizer in std::iter::once(env.optimizer.0.get()).chain(seeds) {
            optimizer.zero_state()?;
            optimizer.drop_gradients()?;
        }
        env.scaler.reset()?;
    }
    let step = growth.clock.step();
    let restored = env.governor.rolled_back(step);
    set_back(&mut growing.stats, &restored, step, *env.val);
    // Idle until the round ends.
    if is_in_vain || growing.stats.rollbacks >= limit {
        growing.stats.end = Some(EpisodeEnding {
            reason: EndReason::GovernorLimit,
            step,
        });
    }
    *env.status = StepStatus::RolledBack;
    env.rollback.0 = Some(Rollback {
        alarm,
        blamed,
        raw_penalty: if blamed { -DEATH_PENALTY } else { 0.0 },
        snapshot_step: restored.step,
        steps_lost: step.saturating_sub(restored.step),
        pruned,
        is_charged: false,
    });
    Ok(())
}

/// Returns whether a live seed is pruned with the abandoned state. A seed that only learns from the host has done no harm.
fn is_pruned(seed: &SeedRecord) -> bool {
    let is_merged = matches!(seed.stage, SeedStage::Blending | SeedStage::Holding) || seed.bears_on_network();
    seed.stage.is_live() && is_merged
}

/// Prunes at once, at any alpha and with any pending ramp. Slots that cool down are left unchanged.
fn prune_live_seeds(
    env: &mut GrowingEnvItem,
    order: PruneOrder,
    growth: &mut GrowthContext,
) -> Result<SmallVec<[usize; 4]>, Failure> {
    let limits = growth.experiment.limits();
    let mut pruned = SmallVec::new();
    for index in 0..env.slots.0.len() {
        let slot = &env.slots.0[index];
        let Some(seed) = slot.record.as_ref().filter(|seed| is_pruned(seed)) else {
            continue;
        };
        let plan = prune_now(seed, order, &growth.rules(&limits)).map_err(|refusal| GovernorError::PruneFailed {
            slot: slot.spec.slot,
            reason: refusal.to_string(),
        })?;
        growth.apply(plan, index, env, false)?;
        pruned.push(index);
    }
    Ok(pruned)
}

/// The episode's tallies after a rollback. A fresh host was never validated: what was measured in this step is then all
/// that is known of it.
fn set_back(stats: &mut EpisodeStats, restored: &SnapshotInput, step: u32, measured: ValMetrics) {
    stats.rollbacks += 1;
    stats.best_accuracy_percent = restored.best_accuracy_percent;
    stats.best_step = restored.best_step;
    stats.last_val = restored.val.or(Some(measured));
    if restored.val.is_none() {
        stats.note_accuracy(step, measured.accuracy_percent);
    }
}

/// Records every rollback of the step, once it has succeeded and a learner has given credit for it. If a transition has
/// been charged already, or none is to be charged, the pruned seeds cost nothing more.
pub fn report_rollbacks(mut envs: Query<(&EnvId, &RollbackVerdict, &mut SeedSlots)>, mut context: GovernorContext) {
    for (id, verdict, mut slots) in envs.iter_mut().sort_unstable::<&EnvId>() {
        let Some(rollback) = &verdict.0 else { continue };
        let event = GovernorRollback {
            kind: rollback.alarm.kind,
            snapshot_step: rollback.snapshot_step,
            steps_lost: rollback.steps_lost,
        };
        context.push(id, event);
        if rollback.is_charged || !rollback.blamed {
            for &index in &rollback.pruned {
                if let Some(seed) = &mut slots.0[index].record {
                    seed.take_auto_pruned();
                }
            }
        }
    }
}
