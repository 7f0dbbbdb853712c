//! The fused validation pass of an env: plan and fold once per step, evaluate batch by batch.

use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_platform::cell::SyncCell;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::changes::LastMeasured;
use super::coalition::coalition_forward;
use super::coalition_tree::{CoalitionTree, LiveSlot};
use super::plan::{AttributionPlan, PlanMoment, plan_coalitions};
use crate::clock::RunClock;
use crate::data::Batch;
use crate::env::grafted::graft_kind;
use crate::env::{EnvId, EnvSetup, EnvStream, Experiment, HostModel, Slot, StepStatus, in_batch};
use crate::health::Failure;
use crate::nn::Mode;
use crate::seed::Isolation;
use crate::telemetry::{Phase, PhaseClock, TelemetryOutbox};
use crate::torch::{Inference, Stream, TorchError, catch};
use crate::training::{BatchLoop, BatchPoint, TrainingEnv, TrainingRules};

/// The validation batches, the same views of the same samples for every env of a device.
#[derive(Component)]
pub struct ValidationBatches(pub SyncCell<Vec<Batch>>);

/// Configurations that the step's pass evaluates, and their cost.
#[derive(Component, Default, Serialize, Deserialize)]
pub struct ValPlan {
    /// `None` before the first step.
    pub plan: Option<AttributionPlan>,
    /// The tree of the step's pass alone, like everything that is not kept.
    #[serde(skip)]
    tree: Option<SyncCell<CoalitionTree>>,
    /// Positions of each configuration's sums among those of the pass.
    places: SmallVec<[usize; 8]>,
    /// Multiply-accumulates of a sample.
    pub macs: u64,
    /// Host time spent in the step's pass; on CUDA, to launch it.
    #[serde(skip)]
    pub elapsed: Duration,
    last_measured: LastMeasured,
}

impl ValPlan {
    /// Plan of configurations that something else than the pass evaluates.
    pub fn of(plan: AttributionPlan) -> Self {
        Self {
            plan: Some(plan),
            ..Self::default()
        }
    }

    /// Positions of each configuration's sums in the env's pack, in plan order.
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// Returns whether no seed is on the output path: the whole network equals every configuration of it.
    pub fn has_no_players(&self) -> bool {
        let plan = self.plan.as_ref();
        plan.is_some_and(|plan| plan.coalitions.players.is_empty())
    }

    /// Forgets the measurement, since the network has changed: the next step measures its seeds in any case.
    pub fn forget_measurement(&mut self) {
        self.last_measured.forget();
    }
}

/// Gives every env its handles on the validation data, and its host the room to fold.
pub fn equip_envs(
    mut envs: Query<(Entity, &EnvId, &mut EnvStream, &mut HostModel)>,
    mut setup: EnvSetup,
) -> Result<(), Failure> {
    for (entity, id, mut stream, mut host) in &mut envs {
        setup.insert((entity, id), &mut stream, |resident, feed| {
            host.0.get().refill()?;
            let batches = resident.val().batches(feed.val_batch_size, feed.val_batches);
            Ok(ValidationBatches(SyncCell::new(batches)))
        })?;
    }
    Ok(())
}

/// The seeds on the output path, in execution order.
pub fn live_slots<'a>(slots: &'a mut [Slot], isolation: Isolation) -> SmallVec<[LiveSlot<'a>; 4]> {
    let mut live: SmallVec<[LiveSlot; 4]> = slots
        .iter_mut()
        .enumerate()
        .filter_map(|(index, slot)| {
            let (seed, module) = (slot.record.as_ref()?, slot.module.as_mut()?);
            let (alpha, algorithm) = (seed.alpha.alpha(), seed.algorithm);
            graft_kind(seed.stage, alpha, algorithm, isolation, Mode::Eval)?;
            Some(LiveSlot {
                slot: index,
                boundary: slot.spec.boundary,
                instance: module.get(),
                alpha,
                algorithm,
            })
        })
        .collect();
    live.sort_unstable_by_key(|slot| slot.boundary);
    live
}

/// Everything of an env that a validation batch touches.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct ValidatedEnv {
    training: TrainingEnv,
    batches: &'static mut ValidationBatches,
    plan: &'static mut ValPlan,
}

/// Measures all envs on the step's validation batches, and calls the hooks in each. An env that fails is left out of the rest
/// of the step.
pub fn validate_batches(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvStream, ValidatedEnv)>,
    rules: TrainingRules,
    batches: BatchLoop,
    mut outbox: ResMut<TelemetryOutbox>,
    mut phases: ResMut<PhaseClock>,
) -> Result<(), Failure> {
    phases.enter(Phase::Validate);
    let (_, count) = rules.clock.batches_per_step();
    let validated = batches.parts(count).try_for_each(|part| {
        batches.pool.for_each_active(envs.iter_mut(), |_, stream, mut env| {
            part.clone()
                .try_for_each(|batch| validate_on(&mut env, &rules, stream, batch))
        })
    });
    // Reported before the failure that may end the run.
    outbox.extend(rules.hooks.take_events());
    validated
}

/// Validation batch `batch` of the step under all configurations of the env's seeds; the first one plans them.
///
/// # Errors
/// The error of the part that fails; it knows its batch.
fn validate_on(
    env: &mut ValidatedEnvItem,
    rules: &TrainingRules,
    stream: &Stream,
    batch: usize,
) -> Result<(), Failure> {
    if batch == 0 {
        in_batch("validation plan", 0, || plan(env, &rules.clock, &rules.experiment))?;
    }
    in_batch("validation", batch, || evaluate(env, rules, stream, batch))?;
    let samples = &mut env.batches.0.get()[batch];
    let around = (&*rules.clock, &*rules.experiment);
    rules
        .hooks
        .call(BatchPoint::Validated, (batch, samples), &mut env.training, around)
}

/// Plans the configurations, their tree and the folded weights.
fn plan(env: &mut ValidatedEnvItem, clock: &RunClock, experiment: &Experiment) -> Result<(), Failure> {
    let scenario = &experiment.scenario;
    env.training.host.0.get().refill()?;
    if clock.step() == 1 {
        env.plan.forget_measurement();
    }
    let is_final = clock.is_last_step();
    let committed_play = scenario.attribution.include_committed || experiment.reward.measures_committed;
    let (players, attribution) = env.plan.last_measured.find(
        env.training.slots.records(),
        committed_play,
        &scenario.attribution,
        is_final,
    );
    let place = (clock.round(), env.training.id.index, clock.step());
    let moment = PlanMoment::new(scenario.run.seed, place, is_final);
    let plan = plan_coalitions(&players, &attribution, moment);
    let live = live_slots(&mut env.training.slots.0, experiment.isolation());
    let tree = CoalitionTree::new(&plan.coalitions, &live);
    env.plan.macs = tree.macs(env.training.host.0.get().op_costs(), &live);
    drop(live);
    env.plan.places = SmallVec::from_slice(tree.places());
    env.plan.tree = Some(SyncCell::new(tree));
    env.plan.plan = Some(plan);
    env.plan.elapsed = Duration::ZERO;
    Ok(())
}

/// Evaluates in chunks that fit the caches; sums stay on the device.
fn evaluate(env: &mut ValidatedEnvItem, rules: &TrainingRules, stream: &Stream, batch: usize) -> Result<(), Failure> {
    let began = Instant::now();
    let ValPlan {
        tree: Some(tree),
        elapsed,
        ..
    } = &mut *env.plan
    else {
        return Err(Failure::message("validation was not planned"));
    };
    let (tree, samples) = (tree.get(), &env.batches.0.get()[batch]);
    let live = live_slots(&mut env.training.slots.0, rules.experiment.isolation());
    let chunk = tree.chunk_samples(env.training.backend.0.device);
    let _inference = Inference::new()?;
    let (host, sums) = (&**env.training.host.0.get(), env.training.sums.0.get());
    in_chunks(samples.n as i64, chunk, |first, count| {
        let x = samples.x.f_narrow(0, first, count)?;
        let y = samples.y.f_narrow(0, first, count)?;
        rules
            .fallbacks
            .compute(env.training.backend.0, &mut env.training.stats.fallbacks, |_| {
                let logits = coalition_forward(host, &live, tree, &x)?;
                sums.add_val(&logits, &y, tree.places()[MAIN]).map_err(Failure::from)
            })?;
        stream.note_write(sums.pack());
        Ok(())
    })?;
    *elapsed += began.elapsed();
    Ok(())
}

/// Evaluates `samples` in chunks of at most `chunk`. A chunk that the device has no room for is halved, once per batch:
/// what was evaluated before it counts.
pub(super) fn in_chunks(
    samples: i64,
    chunk: i64,
    mut evaluate: impl FnMut(i64, i64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut first, mut chunk, mut is_halved) = (0, chunk, false);
    while first < samples {
        let count = chunk.min(samples - first);
        let evaluated = catch(|| evaluate(first, count)).map_err(Failure::from).flatten();
        match evaluated {
            Ok(()) => first += count,
            Err(failure) if !is_halved && count > 1 && is_out_of_memory(&failure) => {
                tracing::warn!(
                    "no memory to validate {count} samples at once; the rest of this batch is validated in halves"
                );
                (chunk, is_halved) = (count / 2, true);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

fn is_out_of_memory(failure: &Failure) -> bool {
    matches!(TorchError::classify(failure.to_string()), TorchError::OutOfMemory(_))
}

/// Index of the configuration that is the validation result: all players on.
pub const MAIN: usize = 0;

#[cfg(test)]
mod tests;
