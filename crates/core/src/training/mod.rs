//! The training half of a step: batches reach their env, host and seeds learn from them, sums are read and named.

mod pack;
mod accumulators;
pub(crate) mod graphs;
mod components;
mod hooks;
pub(crate) mod precision;
pub(crate) mod rates;
pub(crate) mod step;
pub(crate) mod batches;

use bevy_app::{App, Plugin};

pub use accumulators::{Accumulators, evaluate_rows};
pub use batches::{BatchLoop, BatchOrder};
pub use components::{EnvAccumulators, EnvFeed, EnvLossScaler, GroupNorms, StepResult, TrainingEnv, TrainingEnvItem};
pub use graphs::EnvGraphs;
pub use hooks::{BatchHooks, BatchPoint, HookedBatch, OnBatch};
pub use pack::{ConfigNumbers, GroupNumbers, PackLayout, SlotNumbers, StepNumbers};
pub use precision::{TrainingPrecision, with_environment};
pub use rates::LastGrowth;
pub use step::TrainingRules;

use crate::env::{EnvId, KeepInRounds};
use crate::schedule::{AddWork, Assess, Batches, RoundStart, Startup, StepStart, StepSync, Work};

/// Feeds and trains all envs.
pub struct TrainingPlugin;

impl Plugin for TrainingPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<BatchHooks>()
            .register_required_components::<EnvId, StepResult>()
            .register_required_components::<EnvId, EnvGraphs>();
        app.add_work(Startup, Work::ChoosePrecision, precision::choose_precision)
            .add_work(Startup, Work::EquipTraining, batches::equip_envs)
            .add_work(RoundStart, Work::ResetLossScales, precision::reset_loss_scales)
            .add_work(StepStart, Work::SetLearningRates, rates::set_learning_rates)
            .add_work(Batches, Work::FetchBatches, batches::fetch_batches)
            .add_work(Batches, Work::TrainBatches, batches::train_batches)
            .add_work(StepSync, Work::EnqueueReads, batches::reduce_sums)
            .add_work(Assess, Work::DeriveTrainMetrics, batches::derive_train_metrics)
            .keep_in_rounds_by(precision::save_loss_scales, precision::restore_loss_scales)
            .keep_in_rounds::<LastGrowth>("last_growth");
    }
}
