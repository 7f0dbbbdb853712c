//! From configurations to what each seed is worth, written into its record.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::attribution::{Attribution, coalition_rows, shapley};
use super::pass::ValPlan;
use super::plan::AttributionPlan;
use crate::data::FeedArithmetic;
use crate::env::{LoadedData, SeedSlots, StepStatus};
use crate::growth::SeedStage;
use crate::seed::SeedRecord;
use crate::telemetry::{CoalitionRow, CounterfactualMatrix, Payload};
use crate::training::StepResult;

/// The step's measured configurations; `None` where only the network as it is was evaluated.
#[derive(Component, Default, Serialize, Deserialize)]
pub struct Counterfactual {
    /// What was measured.
    pub matrix: Option<CounterfactualMatrix>,
    /// What follows from it.
    pub attribution: Option<Attribution>,
}

impl Counterfactual {
    /// Accuracy, in percent, and loss, in nats, with those of the measured seeds alone that `stay` as they are now: an action
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

    /// Accuracy, in percent, with the seeds alone that are committed by now. `whole`: what the network as it is reached.
    /// `None` if that mask was not measured.
    pub fn committed_accuracy(&self, plan: &ValPlan, slots: &SeedSlots, whole: f64) -> Option<f64> {
        let records: SmallVec<[_; 4]> = slots.records().collect();
        let committed = self.with_seeds(plan, &records, (whole, f64::NAN), |seed| {
            seed.stage == SeedStage::Committed
        });
        committed.map(|(accuracy, _)| accuracy)
    }

    /// The events of the measurement; how the players share what they add together is one of an episode's last step, and of
    /// every measurement where that is what is measured.
    pub fn events(&self, plan: &ValPlan, is_last_step: bool) -> impl Iterator<Item = Payload> {
        let matrix = self.matrix.as_ref();
        let shares = matrix.zip(plan.plan.as_ref());
        let shares = shares.filter(|(_, plan)| is_last_step || plan.tells_shares);
        let shares = shares.and_then(|(matrix, plan)| shapley(matrix, &plan.permutations));
        let matrix = matrix.map(|matrix| matrix.short().into());
        matrix.into_iter().chain(shares.map(Payload::from))
    }
}

/// What `attribute` reads and writes of an env.
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
        // What a network showed that is not there any more says nothing about the one that is.
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

/// What the pass measured of the players as they are.
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
