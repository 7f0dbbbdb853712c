//! A step's batches in one go: each env trains on all of its batches, then validates.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;

use super::pass::{FoldedModel, ValBatches, ValPlan, ValidatingEnvItem, validate_on_all};
use crate::clock::RunClock;
use crate::env::{EnvId, EnvPool, EnvStream, Experiment, FallbackGuard, StepStatus};
use crate::health::Failure;
use crate::training::EnvFeed;
use crate::training::batches::train_on_all;
use crate::training::step::{TrainingEnv, TrainingRules};

/// Everything of an env that the batches of a step touch.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct SteppingEnv {
    feed: &'static mut EnvFeed,
    training: TrainingEnv,
    folded: &'static mut FoldedModel,
    batches: &'static mut ValBatches,
    plan: &'static mut ValPlan,
}

/// For each env what the works of `TrainBatch` and then those of `ValBatch` do batch after batch.
pub fn train_and_validate(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvStream, SteppingEnv)>,
    clock: Res<RunClock>,
    rules: TrainingRules,
    experiment: Res<Experiment>,
    pool: Res<EnvPool>,
    guard: Res<FallbackGuard>,
) -> Result<(), Failure> {
    let (batches, _) = clock.batches_per_step();
    pool.for_each_active(envs.iter_mut(), |id, stream, mut env| {
        train_on_all(&mut env.feed, &mut env.training, &rules, stream, batches)?;
        let mut validating = ValidatingEnvItem {
            backend: env.training.backend,
            folded: env.folded,
            slots: env.training.slots,
            batches: env.batches,
            plan: env.plan,
            sums: env.training.sums,
            stats: env.training.stats,
        };
        validate_on_all(id, &mut validating, (stream, &clock, &guard), &experiment)
    })
}
