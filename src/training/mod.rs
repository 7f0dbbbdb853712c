//! The training half of a step: batches reach their env, host and seeds learn from them (spec 06 §6-7).

mod fetch;
mod precision;
mod step;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;

pub use fetch::{BatchSlot, EnvAccumulators, EnvFeed};
pub use precision::TrainingPrecision;
pub use step::{GroupNorms, is_watched};

use crate::health::record_failure;
use crate::schedule::{Startup, StepStart, TrainBatch, Work};

/// Feeds and trains all envs.
pub struct TrainingPlugin;

impl Plugin for TrainingPlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(Startup, precision::choose_precision.in_set(Work::ChoosePrecision))
            .add_systems(
                Startup,
                fetch::equip_envs.pipe(record_failure).in_set(Work::EquipTraining),
            )
            .add_systems(
                StepStart,
                fetch::begin_step.pipe(record_failure).in_set(Work::BeginStep),
            )
            .add_systems(
                TrainBatch,
                fetch::fetch_train_batch
                    .pipe(record_failure)
                    .in_set(Work::FetchTrainBatch),
            )
            .add_systems(
                TrainBatch,
                step::forward_backward
                    .pipe(record_failure)
                    .in_set(Work::ForwardBackward),
            )
            .add_systems(TrainBatch, step::optimize.pipe(record_failure).in_set(Work::Optimize));
    }
}
