//! From configurations to what each seed is worth, written into its record (spec 06 A5, 05 §10).

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::pass::ValPlan;
use super::sync::StepResult;
use super::*;
use crate::env::{EnvId, Experiment, LoadedData, RunClock, SeedSlots, StepStatus};
use crate::health::{EngineError, Failure, Position, record_failure};
use crate::schedule::{Assess, Startup, StepEnd, StepSync, ValBatch, Work};
use crate::seed::Interactions;

/// The step's measured configurations; `None` where only the network as it is was evaluated.
#[derive(Component, Default)]
pub struct Counterfactual {
    pub matrix: Option<CounterfactualMatrix>,
    pub attribution: Option<Attribution>,
}

/// Validates all envs with all coalitions of their seeds.
pub struct ValidationPlugin;

impl Plugin for ValidationPlugin {
    fn build(&self, app: &mut App) {
        app.register_required_components::<EnvId, ValPlan>();
        app.register_required_components::<EnvId, StepResult>();
        app.register_required_components::<EnvId, Counterfactual>();
        app.register_required_components::<EnvId, TestResult>();
        app.add_systems(
            Startup,
            pass::equip_envs.pipe(record_failure).in_set(Work::EquipValidation),
        )
        .add_systems(ValBatch, pass::plan_val.pipe(record_failure).in_set(Work::PlanVal))
        .add_systems(
            ValBatch,
            pass::evaluate_batch.pipe(record_failure).in_set(Work::CoalitionForward),
        )
        .add_systems(
            StepSync,
            sync::enqueue_reads.pipe(record_failure).in_set(Work::EnqueueReads),
        )
        .add_systems(StepSync, sync::wait_all.pipe(record_failure).in_set(Work::WaitAll))
        .add_systems(StepSync, sync::unpack.pipe(record_failure).in_set(Work::Unpack))
        .add_systems(
            StepEnd,
            final_test::evaluate_test
                .pipe(record_failure)
                .in_set(Work::EvaluateTest),
        )
        .add_systems(Assess, sync::derive_metrics.in_set(Work::DeriveMetrics))
        .add_systems(Assess, attribute.pipe(record_failure).in_set(Work::Attribute));
    }
}

/// Contributions, interactions and neighbours of every player; other seeds are left unmeasured.
fn attribute(
    mut envs: Query<(
        &EnvId,
        &StepStatus,
        &StepResult,
        &ValPlan,
        &mut SeedSlots,
        &mut Counterfactual,
    )>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    data: Res<LoadedData>,
) -> Result<(), EngineError> {
    for (id, status, result, plan, mut slots, mut counterfactual) in &mut envs {
        // What a network showed that is not there any more says nothing about the one that is.
        if *status == StepStatus::RolledBack {
            *counterfactual = Counterfactual::default();
        }
        if !status.participates() {
            continue;
        }
        let (Some(numbers), Some(plan)) = (&result.0, &plan.plan) else {
            continue;
        };
        for record in slots.0.iter_mut().filter_map(|slot| slot.record.as_mut()) {
            record.interactions = Interactions::default();
        }
        *counterfactual = Counterfactual::default();
        if plan.coalitions.masks.len() == 1 {
            continue;
        }
        let identity = MatrixIdentity {
            env: id.index,
            episode: experiment.episode(clock.round(), id.index),
            step: clock.step(),
            players: matrix_players(&plan.coalitions.players, &slots),
            strategy: experiment.scenario.attribution.strategy,
        };
        let tallies: Vec<_> = numbers
            .configs
            .iter()
            .map(|config| MaskTally {
                correct: config.correct,
                loss_sum: config.loss_sum,
                lost: config.only_main_correct as u32,
                gained: config.only_this_correct as u32,
            })
            .collect();
        let samples = data.feed.val_samples() as u64;
        let matrix = CounterfactualMatrix::new(identity, plan, samples, &tallies).map_err(|error| EngineError {
            phase: "attribution",
            position: Position {
                env: Some(id.index),
                ..clock.position()
            },
            failure: Failure::message(error.to_string()),
        })?;
        let attribution = matrix.attribute();
        let decay = experiment.scenario.attribution.velocity_decay;
        write_records(&mut slots, &plan.coalitions.players, &attribution, decay);
        *counterfactual = Counterfactual {
            matrix: Some(matrix),
            attribution: Some(attribution),
        };
    }
    Ok(())
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

fn write_records(slots: &mut SeedSlots, players: &[usize], attribution: &Attribution, decay: f64) {
    let neighbours: SmallVec<[(usize, f64); 4]> = players
        .iter()
        .map(|&slot| {
            let alpha = slots.0[slot].record.as_ref().map_or(0.0, |seed| seed.alpha.alpha());
            (slots.0[slot].spec.boundary, alpha)
        })
        .collect();
    for (player, &slot) in players.iter().enumerate() {
        let boundary = slots.0[slot].spec.boundary;
        let Some(record) = &mut slots.0[slot].record else {
            continue;
        };
        let measured = &attribution.players[player];
        if let (Some(points), Some(loss)) = (measured.contribution, measured.contribution_loss) {
            record.measure_contribution(points, loss, decay);
        }
        let alphas = |keep: fn(usize, usize) -> bool| -> f64 {
            neighbours
                .iter()
                .filter(|(other, _)| keep(*other, boundary))
                .map(|(_, alpha)| alpha)
                .sum()
        };
        let summary = measured.interactions.unwrap_or_default();
        record.interactions = Interactions {
            sum: summary.sum,
            boost_received: summary.boost,
            upstream_alpha_sum: alphas(|other, own| other < own),
            downstream_alpha_sum: alphas(|other, own| other > own),
        };
    }
}
