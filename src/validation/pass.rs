//! The fused validation pass as systems: plan and fold once per step, evaluate batch by batch (spec 06 V0-V2, §8).

use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_platform::cell::SyncCell;
use smallvec::SmallVec;

use super::*;
use crate::data::{Batch, evaluate_rows};
use crate::env::{
    Devices, EnvDevice, EnvId, EnvPool, EnvStream, Experiment, HostModel, LoadedData, RunClock, SeedSlots, Slot,
    StepStatus,
};
use crate::health::{EngineError, Failure, Position};
use crate::host::Mode;
use crate::host::graft::{UseKind, use_kind};
use crate::random::{Domain, derive};
use crate::scenario::LifecycleConfig;
use crate::torch::{Inference, TorchError};
use crate::training::EnvAccumulators;

/// The host as validation runs it, refilled in place once per step.
#[derive(Component)]
pub struct FoldedModel(pub SyncCell<FoldedHost>);

/// The validation batches, the same views of the same samples for every env of a device.
#[derive(Component)]
pub struct ValBatches(pub SyncCell<Vec<Batch>>);

/// What the step's pass evaluates.
#[derive(Component, Default)]
pub struct ValPlan {
    /// `None` before the first step.
    pub plan: Option<AttributionPlan>,
    tree: Option<SyncCell<CoalitionTree>>,
    /// Forward cost of a sample, for telemetry.
    pub flops: ValidationFlops,
    /// Host time spent in the step's pass; on CUDA, to launch it.
    pub elapsed: Duration,
}

impl ValPlan {
    /// No seed stands on the output path: the network as it is equals every configuration of it.
    pub fn has_no_players(&self) -> bool {
        let plan = self.plan.as_ref();
        plan.is_some_and(|plan| plan.coalitions.players.is_empty())
    }
}

/// Gives every env its folded host and its handles on the validation data.
pub fn equip_envs(
    mut commands: Commands,
    mut envs: Query<(Entity, &EnvId, &mut EnvStream, &mut HostModel)>,
    devices: Res<Devices>,
    mut data: ResMut<LoadedData>,
) -> Result<(), EngineError> {
    let feed = data.feed;
    for (entity, id, mut stream, mut host) in &mut envs {
        let mut equip = || -> Result<(), Failure> {
            let _guard = stream.0.get().enter()?;
            let folded = FoldedHost::new(host.0.get())?;
            let resident = &data.resident.get()[devices.index_of_env(id.index)];
            let batches = resident.val.batches(feed.val_batch_size, feed.val_batches);
            commands
                .entity(entity)
                .insert((FoldedModel(SyncCell::new(folded)), ValBatches(SyncCell::new(batches))));
            Ok(())
        };
        equip().map_err(|failure| EngineError {
            phase: "start-up",
            position: Position {
                env: Some(id.index),
                ..Position::default()
            },
            failure,
        })?;
    }
    Ok(())
}

/// The seeds on the output path, in execution order.
pub fn live_slots<'a>(slots: &'a mut [Slot], lifecycle: &LifecycleConfig) -> SmallVec<[LiveSlot<'a>; 4]> {
    let mut live: SmallVec<[LiveSlot; 4]> = slots
        .iter_mut()
        .enumerate()
        .filter_map(|(index, slot)| {
            let (seed, module) = (slot.record.as_ref()?, slot.module.as_mut()?);
            let (alpha, algorithm) = (seed.alpha.alpha(), seed.algorithm);
            match use_kind(seed.stage, alpha, algorithm, &lifecycle.isolation.cnn, Mode::Eval)? {
                UseKind::Blend { .. } => Some(LiveSlot {
                    slot: index,
                    boundary: slot.spec.boundary,
                    instance: module.get(),
                    alpha,
                    algorithm,
                }),
                UseKind::StraightThrough => None,
            }
        })
        .collect();
    live.sort_unstable_by_key(|slot| slot.boundary);
    live
}

/// Everything of an env that the pass touches.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct ValidatingEnv {
    id: &'static EnvId,
    status: &'static StepStatus,
    device: &'static EnvDevice,
    stream: &'static mut EnvStream,
    folded: &'static mut FoldedModel,
    slots: &'static mut SeedSlots,
    batches: &'static mut ValBatches,
    plan: &'static mut ValPlan,
    sums: &'static mut EnvAccumulators,
}

fn active<'a>(envs: &'a mut Query<ValidatingEnv>) -> impl Iterator<Item = (EnvId, ValidatingEnvItem<'a, 'a>)> {
    let envs = envs.iter_mut().filter(|env| env.status.is_active());
    envs.map(|env| (*env.id, env))
}

/// Before the step's first validation batch: which configurations, over which tree, with which folded weights.
pub fn plan_val(
    mut envs: Query<ValidatingEnv>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    pool: Res<EnvPool>,
) -> Result<(), EngineError> {
    if clock.batch() > 0 {
        return Ok(());
    }
    let scenario = &experiment.scenario;
    let envs = active(&mut envs);
    pool.for_each("validation plan", clock.position(), envs, |id, mut env| {
        let _guard = env.stream.0.get().enter()?;
        env.folded.0.get().refill()?;
        let stages = env
            .slots
            .records()
            .map(|record| record.map(|seed| (seed.stage, seed.alpha.alpha())));
        let players = find_players(stages, scenario.attribution.include_fossilized);
        let indices = [
            u64::from(clock.round()),
            id.index_in_group as u64,
            u64::from(clock.step()),
        ];
        let moment = PlanMoment {
            step: clock.step(),
            is_final: clock.is_last_step(),
            permutation_seed: derive(scenario.run.seed, Domain::AttributionPermutations, &indices),
        };
        let plan = plan_coalitions(&players, &scenario.attribution, moment);
        let live = live_slots(&mut env.slots.0, &scenario.lifecycle);
        let tree = CoalitionTree::new(&plan.coalitions, &live, env.device.0)?;
        env.plan.flops = tree.flops(env.folded.0.get().op_costs(), &live);
        drop(live);
        env.plan.tree = Some(SyncCell::new(tree));
        env.plan.plan = Some(plan);
        env.plan.elapsed = Duration::ZERO;
        Ok(())
    })
}

/// One validation batch under all configurations, in chunks that fit the caches; sums stay on the device.
pub fn evaluate_batch(
    mut envs: Query<ValidatingEnv>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    pool: Res<EnvPool>,
) -> Result<(), EngineError> {
    let scenario = &experiment.scenario;
    let envs = active(&mut envs);
    pool.for_each("validation", clock.position(), envs, |_, mut env| {
        let stream = &*env.stream.0.get();
        let _guard = stream.enter()?;
        let began = Instant::now();
        let Some(tree) = &mut env.plan.tree else {
            return Err(Failure::message("validation was not planned"));
        };
        let (tree, batch) = (tree.get(), &env.batches.0.get()[clock.batch()]);
        let live = live_slots(&mut env.slots.0, &scenario.lifecycle);
        let chunk = tree.chunk_samples(env.device.0, scenario.attribution.max_fused_rows);
        let _inference = Inference::new()?;
        let samples = batch.n as i64;
        let mut first = 0;
        while first < samples {
            let count = chunk.min(samples - first);
            let x = batch.x.f_narrow(0, first, count).map_err(TorchError::from)?;
            let y = batch.y.f_narrow(0, first, count).map_err(TorchError::from)?;
            let logits = coalition_forward(&*env.folded.0.get(), &live, tree, &x)?;
            let (losses, correct) = evaluate_rows(&logits, &y).map_err(TorchError::from)?;
            let sums = env.sums.0.get();
            sums.add_val(&losses, &correct, MAIN).map_err(TorchError::from)?;
            stream.note_write(sums.pack());
            first += count;
        }
        env.plan.elapsed += began.elapsed();
        Ok(())
    })
}

/// Index of the configuration that is the validation result: all players as they are.
pub const MAIN: usize = 0;
