//! From configurations to what each seed is worth, written into its record (spec 06 A5, 05 §10).

use std::cmp::Ordering;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use smallvec::SmallVec;

use super::pass::ValPlan;
use super::sync::StepResult;
use super::*;
use crate::clock::RunClock;
use crate::data::ConfigNumbers;
use crate::env::{EnvId, Experiment, LoadedData, SeedSlots, StepStatus};
use crate::growth::SeedStage;
use crate::health::{Failure, InEnv};
use crate::schedule::{AddWork, Assess, Startup, StepEnd, StepSync, ValBatch, Work};
use crate::seed::Interactions;

/// The step's measured configurations; `None` where only the network as it is was evaluated.
#[derive(Component, Default)]
pub struct Counterfactual {
    pub matrix: Option<CounterfactualMatrix>,
    pub attribution: Option<Attribution>,
}

impl Counterfactual {
    /// Accuracy, in percent, with the seeds alone that are committed by now: a commit since the measurement counts (spec
    /// 05 §10.4). `whole`: what the network as it is reached. `None` if that mask was not measured.
    pub fn committed_accuracy(&self, plan: &ValPlan, slots: &SeedSlots, whole: f64) -> Option<f64> {
        let (Some(plan), Some(matrix)) = (&plan.plan, &self.matrix) else {
            return plan.has_no_players().then_some(whole);
        };
        let is_committed = |slot: usize| {
            let record = slots.0[slot].record.as_ref();
            record.is_some_and(|seed| seed.stage == SeedStage::Fossilized)
        };
        let players = plan.coalitions.players.iter().enumerate();
        let committed = players
            .filter(|(_, slot)| is_committed(**slot))
            .fold(0, |mask, (player, _)| mask | 1 << player);
        matrix.get(committed).map(|measured| measured.accuracy)
    }
}

/// Validates all envs with all coalitions of their seeds.
pub struct ValidationPlugin;

impl Plugin for ValidationPlugin {
    fn build(&self, app: &mut App) {
        app.register_required_components::<EnvId, ValPlan>();
        app.register_required_components::<EnvId, StepResult>();
        app.register_required_components::<EnvId, Counterfactual>();
        app.register_required_components::<EnvId, InteractionRegimes>();
        app.register_required_components::<EnvId, TestResult>();
        app.add_work(Startup, Work::EquipValidation, pass::equip_envs)
            .add_work(ValBatch, Work::PlanVal, pass::plan_val)
            .add_work(ValBatch, Work::CoalitionForward, pass::evaluate_batch)
            .add_work(StepSync, Work::EnqueueReads, sync::enqueue_reads)
            .add_work(StepSync, Work::WaitAll, sync::wait_all)
            .add_work(StepSync, Work::Unpack, sync::unpack)
            .add_work(StepEnd, Work::EvaluateTest, final_test::evaluate_test)
            .add_work(Assess, Work::DeriveMetrics, sync::derive_metrics)
            .add_work(Assess, Work::Attribute, attribute);
    }
}

/// What `attribute` reads and writes of an env.
#[derive(QueryData)]
#[query_data(mutable)]
struct AttributedEnv {
    id: &'static EnvId,
    status: &'static StepStatus,
    result: &'static StepResult,
    plan: &'static ValPlan,
    slots: &'static mut SeedSlots,
    counterfactual: &'static mut Counterfactual,
    regimes: &'static mut InteractionRegimes,
}

/// Contributions, interactions and neighbours of every player; other seeds are left unmeasured.
fn attribute(
    mut envs: Query<AttributedEnv>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    data: Res<LoadedData>,
) -> Result<(), Failure> {
    let samples = data.feed.val_samples() as u64;
    for mut env in &mut envs {
        // What a network showed that is not there any more says nothing about the one that is.
        if env.status.participates() || *env.status == StepStatus::RolledBack {
            *env.counterfactual = Counterfactual::default();
        }
        if !env.status.participates() {
            continue;
        }
        let (Some(numbers), Some(plan)) = (&env.result.0, &env.plan.plan) else {
            continue;
        };
        let players = &plan.coalitions.players;
        meet_neighbours(&mut env.slots, players);
        if plan.coalitions.masks.len() == 1 {
            continue;
        }
        let identity = MatrixIdentity {
            env: env.id.index,
            episode: experiment.episode(clock.round(), env.id.index),
            step: clock.step(),
            players: matrix_players(players, &env.slots),
            strategy: experiment.scenario.attribution.strategy,
        };
        let tallies: Vec<MaskTally> = numbers.configs.iter().map(tally).collect();
        let matrix = CounterfactualMatrix::new(identity, plan, samples, &tallies).in_env(env.id.index)?;
        let attribution = matrix.attribute();
        write_records(
            &mut env.slots,
            players,
            &attribution,
            experiment.scenario.attribution.velocity_decay,
        );
        env.regimes.measure(&matrix.identity, &attribution);
        *env.counterfactual = Counterfactual {
            matrix: Some(matrix),
            attribution: Some(attribution),
        };
    }
    Ok(())
}

fn tally(config: &ConfigNumbers) -> MaskTally {
    MaskTally {
        correct: config.correct,
        loss_sum: config.loss_sum,
        lost: config.only_main_correct as u32,
        gained: config.only_this_correct as u32,
    }
}

fn matrix_players(players: &[usize], slots: &SeedSlots) -> SmallVec<[MatrixPlayer; 4]> {
    let player = |&slot: &usize| {
        let seed = slots.0[slot].record.as_ref()?;
        let seed_id = seed.identity.seed_id.clone();
        Some(MatrixPlayer {
            slot: slots.0[slot].spec.slot,
            seed_id,
            alpha: seed.alpha.alpha(),
        })
    };
    players.iter().filter_map(player).collect()
}

/// Forgets the interactions of the last pass and tells every player of the alphas before and behind it, in execution
/// order; these are known whether or not this step measures contributions.
fn meet_neighbours(slots: &mut SeedSlots, players: &[usize]) {
    let neighbours: SmallVec<[(usize, f64); 4]> = players
        .iter()
        .filter_map(|&slot| {
            let seed = slots.0[slot].record.as_ref()?;
            Some((slots.0[slot].spec.boundary, seed.alpha.alpha()))
        })
        .collect();
    for (index, slot) in slots.0.iter_mut().enumerate() {
        let Some(seed) = &mut slot.record else { continue };
        seed.interactions = Interactions::default();
        if !players.contains(&index) {
            continue;
        }
        for &(boundary, alpha) in &neighbours {
            match boundary.cmp(&slot.spec.boundary) {
                Ordering::Less => seed.interactions.upstream_alpha_sum += alpha,
                Ordering::Greater => seed.interactions.downstream_alpha_sum += alpha,
                Ordering::Equal => {}
            }
        }
    }
}

fn write_records(slots: &mut SeedSlots, players: &[usize], attribution: &Attribution, decay: f64) {
    for (measured, &slot) in attribution.players.iter().zip(players) {
        let Some(seed) = &mut slots.0[slot].record else {
            continue;
        };
        if let (Some(points), Some(loss)) = (measured.contribution, measured.contribution_loss) {
            seed.measure_contribution(points, loss, decay);
        }
        if let Some(summary) = measured.interactions {
            seed.interactions.sum = summary.sum;
            seed.interactions.boost_received = summary.boost;
        }
    }
}
