//! The end of a step's device work, one wait and one packed read per env, and what its numbers say: metrics, what it took to
//! compute, counted from the declared costs of host and seeds, and what each seed is worth, written into its record.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::attribution::{Attribution, coalition_rows, shapley};
use super::pass::{MAIN, ValPlan};
use super::plan::AttributionPlan;
use crate::data::FeedArithmetic;
use crate::env::grafted::Graft;
use crate::env::{
    EnvId, EnvStream, EpisodeStats, Experiment, HostModel, HostParams, LoadedData, SeedSlots, StepStatus, ValMetrics,
};
use crate::growth::SeedStage;
use crate::health::{Failure, InEnv};
use crate::host::OpCost;
use crate::seed::{Growth, SeedRecord};
use crate::telemetry::{CoalitionRow, CounterfactualMatrix, Payload};
use crate::torch::{HostSyncCounter, read_f64};
use crate::training::{EnvAccumulators, StepResult};

/// The step's only wait; errors of earlier device work surface here.
pub fn wait_all(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvStream)>,
    syncs: Res<HostSyncCounter>,
) -> Result<(), Failure> {
    syncs.allow();
    for (id, status, mut stream) in &mut envs {
        if status.is_active() {
            stream.0.get().synchronize().in_env(id.index)?;
        }
    }
    Ok(())
}

/// Reads every env's pack and gives its numbers their names.
pub fn unpack(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvAccumulators, &ValPlan, &mut StepResult)>,
    syncs: Res<HostSyncCounter>,
) -> Result<(), Failure> {
    for (id, status, mut sums, plan, mut result) in &mut envs {
        result.0 = None;
        if !status.is_active() {
            continue;
        }
        let sums = sums.0.get();
        let pack = read_f64(sums.pack(), &syncs).in_env(id.index)?;
        result.0 = Some(sums.layout().unpack(&pack, plan.places(), MAIN));
    }
    Ok(())
}

/// Loss and accuracy of the whole network.
pub fn derive_val_metrics(mut envs: Query<(&StepResult, &mut ValMetrics)>, data: Res<LoadedData>) {
    let predictions = data.feed.val_units();
    for (result, mut val) in &mut envs {
        let Some(numbers) = &result.0 else { continue };
        let main = numbers.configs[MAIN];
        *val = ValMetrics {
            loss: main.loss(predictions),
            accuracy_percent: main.accuracy_percent(predictions),
        };
    }
}

/// Cost of training, in forward passes: the backward pass takes as much again for the gradients of activations, and once more
/// for those of weights (Kaplan et al. 2020, arXiv:2001.08361, section 2.1). Frozen weights of seeds get their gradients too.
const FORWARD_AND_BACKWARD: u64 = 3;

/// Adds the step's training batches, and its validation batches under all configurations. No seed has changed since they
/// were played. The test part is not counted: nothing learns from it.
pub fn count_compute(
    mut envs: Query<(&StepStatus, &ValPlan, &mut HostModel, &mut SeedSlots, &mut EpisodeStats)>,
    experiment: Res<Experiment>,
    data: Res<LoadedData>,
) {
    for (status, plan, mut host, mut slots, mut stats) in &mut envs {
        if !status.is_active() {
            continue;
        }
        let grafts = slots.training_grafts(experiment.isolation());
        let training = macs_of_training(host.0.get().op_costs(), &grafts);
        stats.compute.train_macs += training * data.feed.train_samples() as u64;
        stats.compute.val_macs += plan.macs * data.feed.val_samples() as u64;
    }
}

/// Multiply-accumulates of training on one sample with the seeds of `grafts`. `ops`: of the host, in order. Frozen ones have no
/// gradients of weights, and of activations only after something that learns.
pub fn macs_of_training(ops: &[OpCost], grafts: &[Graft]) -> u64 {
    let first_learning = ops.iter().position(|op| !op.is_frozen).unwrap_or(ops.len());
    let learning_from = grafts
        .first()
        .map_or(first_learning, |seed| seed.boundary.min(first_learning));
    let passes = |(index, op): (usize, &OpCost)| match op.is_frozen {
        false => FORWARD_AND_BACKWARD,
        true => 1 + u64::from(index >= learning_from),
    };
    let host: u64 = ops.iter().enumerate().map(|op| passes(op) * op.1.macs).sum();
    let seeds = grafts
        .iter()
        .map(|seed| seed.instance.macs(ops[seed.boundary - 1].positions));
    host + FORWARD_AND_BACKWARD * seeds.sum::<u64>()
}

/// The step's measured configurations; `None` where only the whole network was evaluated.
#[derive(Component, Default, Serialize, Deserialize)]
pub struct Counterfactual {
    /// The measured configurations.
    pub matrix: Option<CounterfactualMatrix>,
    /// The attribution that follows from them.
    pub attribution: Option<Attribution>,
}

/// An env's host and seeds, and their measurements.
#[derive(QueryData)]
pub struct MeasuredNetwork {
    /// The host's size.
    pub host: &'static HostParams,
    /// The present seeds.
    pub slots: &'static SeedSlots,
    /// The configurations that were measured.
    pub plan: &'static ValPlan,
    /// The results of the configurations.
    pub counterfactual: &'static Counterfactual,
}

impl MeasuredNetworkItem<'_, '_> {
    /// The size of host and seeds.
    pub fn growth(&self) -> Growth {
        let seeds = self.slots.records().flatten();
        Growth::of(self.host.0, seeds.map(|seed| (seed.stage, seed.params())))
    }

    /// [`Counterfactual::committed_accuracy`].
    pub fn committed_accuracy(&self, whole: f64) -> Option<f64> {
        self.counterfactual.committed_accuracy(self.plan, self.slots, whole)
    }
}

impl Counterfactual {
    /// Accuracy, in percent, and loss, in nats, with only those of the measured seeds that `stay` as they are now: an action
    /// since the measurement counts. `whole`: those of the network as it was measured. `None` if that mask was not.
    pub fn with_seeds(
        &self,
        plan: &ValPlan,
        records: &[Option<&SeedRecord>],
        whole: (f64, f64),
        stay: impl Fn(&SeedRecord) -> bool,
    ) -> Option<(f64, f64)> {
        let (Some(plan), Some(matrix)) = (&plan.plan, &self.matrix) else {
            return plan.has_no_players().then_some(whole);
        };
        let stays = |slot: usize| records[slot].is_some_and(&stay);
        let row = matrix.row(plan.coalitions.mask(stays))?;
        Some((row.accuracy.0, row.loss.0))
    }

    /// Accuracy, in percent, with only the seeds that are committed by now. `whole`: the accuracy of the whole network.
    /// `None` if that mask was not measured.
    pub fn committed_accuracy(&self, plan: &ValPlan, slots: &SeedSlots, whole: f64) -> Option<f64> {
        let records: SmallVec<[_; 4]> = slots.records().collect();
        let committed = self.with_seeds(plan, &records, (whole, f64::NAN), |seed| {
            seed.stage == SeedStage::Committed
        });
        committed.map(|(accuracy, _)| accuracy)
    }

    /// The events of the measurement. The shares of the players in what they add together belong to an episode's last step, and
    /// to every measurement that measures it.
    pub fn events(&self, plan: &ValPlan, is_last_step: bool) -> impl Iterator<Item = Payload> {
        let matrix = self.matrix.as_ref();
        let shares = matrix.zip(plan.plan.as_ref());
        let shares = shares.filter(|(_, plan)| is_last_step || plan.tells_shares);
        let shares = shares.and_then(|(matrix, plan)| shapley(matrix, &plan.permutations));
        let matrix = matrix.map(|matrix| matrix.short().into());
        matrix.into_iter().chain(shares.map(Payload::from))
    }
}

/// Components of an env that `attribute` reads and writes.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct AttributedEnv {
    status: &'static StepStatus,
    result: &'static StepResult,
    plan: &'static mut ValPlan,
    slots: &'static mut SeedSlots,
    counterfactual: &'static mut Counterfactual,
}

/// Contributions and interactions of every player; other seeds are left unmeasured.
pub fn attribute(mut envs: Query<AttributedEnv>, data: Res<LoadedData>) {
    let feed = data.feed;
    for mut env in &mut envs {
        // The results of a network that is gone say nothing about the current one.
        if env.status.participates() || *env.status == StepStatus::RolledBack {
            *env.counterfactual = Counterfactual::default();
        }
        if *env.status == StepStatus::RolledBack {
            env.plan.forget_measurement();
        }
        if !env.status.participates() {
            continue;
        }
        let (Some(numbers), Some(plan)) = (&env.result.0, &env.plan.plan) else {
            continue;
        };
        let players = &plan.coalitions.players;
        for seed in env.slots.0.iter_mut().filter_map(|slot| slot.record.as_mut()) {
            seed.interaction_sum = 0.0;
        }
        if plan.coalitions.masks.len() == 1 {
            continue;
        }
        let rows = coalition_rows(&plan.coalitions.masks, feed.val_units(), &numbers.configs);
        let matrix = matrix(&env, plan, rows, &feed);
        let attribution = Attribution::of(&matrix, plan.committed);
        let records = env.slots.0.iter_mut().map(|slot| slot.record.as_mut());
        attribution.write_into(players, &mut records.collect::<SmallVec<[_; 4]>>());
        *env.counterfactual = Counterfactual {
            matrix: Some(matrix),
            attribution: Some(attribution),
        };
    }
}

/// The pass's measurements of the current players.
fn matrix(
    env: &AttributedEnvItem,
    plan: &AttributionPlan,
    rows: Vec<CoalitionRow>,
    feed: &FeedArithmetic,
) -> CounterfactualMatrix {
    let players = plan.coalitions.players.iter();
    let seeds = players.filter_map(|&slot| env.slots.0[slot].record.as_ref());
    CounterfactualMatrix {
        seed_ids: seeds.map(|seed| seed.identity.seed_id.clone()).collect(),
        rows,
        samples: feed.val_units() as u64,
    }
}
