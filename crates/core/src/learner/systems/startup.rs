//! Building the learner of the run's policy.

use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;
use tch::Tensor;

use super::context::PolicyLearner;
use super::kept::KeptRollouts;
use super::recordings::open_recordings;
use crate::controller::{ActiveController, LearningPolicy};
use crate::env::{Experiment, SelfTest};
use crate::health::Failure;
use crate::learner::algorithm::{BufferShape, Horizon, Learner, RolloutBuffer};
use crate::nn::Implementation;
use crate::reward::RewardHorizon;
use crate::seed::BlueprintRegistry;
use crate::torch::Backend;
use crate::trajectory::Sizes;

/// Builds a learner and an empty rollout for the run's policy, if it learns, and reads the recordings that it learns from.
pub(crate) fn build_learner(
    mut commands: Commands,
    mut controller: ResMut<ActiveController>,
    experiment: Res<Experiment>,
    (tested, blueprints): (Res<SelfTest>, Res<BlueprintRegistry>),
) -> Result<(), Failure> {
    commands.insert_resource(RewardHorizon::from(&experiment.scenario.learner));
    let gamma = experiment.scenario.learner.gamma;
    if experiment.scenario.learner.is_offline() {
        let recordings = open_recordings(controller.0.get().learned(), &experiment, &blueprints, gamma)?;
        commands.insert_resource(recordings);
    }
    if let Some(policy) = controller.0.get().learned() {
        let config = &experiment.scenario.learner;
        if config.kept_rollouts().is_some() {
            let sizes = Sizes::of(policy.schema(), &blueprints);
            commands.insert_resource(KeptRollouts::new(sizes, config.episodes_learnt_from()));
        }
        let backend = Backend::new(policy.net().params().device(), tested.kernels);
        let learner = policy_learner(policy, &experiment, tested.implementation(backend))?;
        commands.insert_resource(learner);
    }
    Ok(())
}

fn policy_learner(
    policy: &mut dyn LearningPolicy,
    experiment: &Experiment,
    implementation: Implementation,
) -> Result<PolicyLearner, Failure> {
    let scenario = &experiment.scenario;
    let (config, envs) = (&scenario.learner, scenario.run.n_envs);
    let max_steps = experiment.task.max_steps;
    let horizon = Horizon {
        total_updates: config.planned_updates(scenario.run.rounds),
        envs,
    };
    let learner = Learner::new(config.clone(), horizon, scenario.run.seed, policy, implementation)?
        .with_cuda_graphs(scenario.run.cuda_graphs);
    policy.set_floor_scale(learner.schedules().probability_floor);
    policy.set_last_good(learner.last_good_params());
    let spec = policy.net().spec();
    let shape = BufferShape {
        envs,
        steps: (config.episodes_learnt_from() as usize).saturating_mul(max_steps as usize),
        observation: spec.observation,
        slots: spec.slots,
        blueprints: spec.blueprints,
        state: policy.recurrent()?.0.iter().map(layers_and_width).collect(),
        chunk_length: config.chunk_length.unwrap_or(max_steps) as usize,
    };
    let device = policy.net().params().device();
    Ok(PolicyLearner {
        learner: SyncCell::new(learner),
        buffer: SyncCell::new(RolloutBuffer::new(shape, device)?),
        began_with: experiment.rounds.start,
        entering: SyncCell::new(None),
    })
}

/// Of a state tensor `[layers, rows, width]`.
fn layers_and_width(state: &Tensor) -> [i64; 2] {
    let size = state.size();
    [size.first().copied().unwrap_or(1), size.last().copied().unwrap_or(1)]
}
