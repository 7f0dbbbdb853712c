//! The training half of a step: batches reach their env, host and seeds learn from them (spec 06 §6-7).

mod fetch;
mod precision;
mod step;

use bevy_app::{App, Plugin};

pub use fetch::{BatchSlot, EnvAccumulators, EnvFeed};
pub use precision::TrainingPrecision;
pub use step::{GroupNorms, is_watched};

use crate::schedule::{AddWork, Startup, StepStart, TrainBatch, Work};

/// Feeds and trains all envs.
pub struct TrainingPlugin;

impl Plugin for TrainingPlugin {
    fn build(&self, app: &mut App) {
        app.add_work(Startup, Work::ChoosePrecision, precision::choose_precision)
            .add_work(Startup, Work::EquipTraining, fetch::equip_envs)
            .add_work(StepStart, Work::BeginStep, fetch::begin_step)
            .add_work(TrainBatch, Work::FetchTrainBatch, fetch::fetch_train_batch)
            .add_work(TrainBatch, Work::ForwardBackward, step::forward_backward)
            .add_work(TrainBatch, Work::Optimize, step::optimize);
    }
}
