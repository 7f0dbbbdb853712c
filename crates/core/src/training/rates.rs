//! Learning rates over an episode: a factor per step, applied to the optimizers of host and seeds before the first batch.

use std::f64::consts::PI;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::clock::RunClock;
use crate::env::{EnvId, EnvStream, Experiment, HostOptimizer, SeedOptimizers, SeedSlots, StepStatus};
use crate::health::{Failure, InEnv};
use crate::scenario::{LearningRateCourse, OptimizerConfig};
use crate::torch::TorchError;

/// The last step of the episode that began while a seed developed; 0 before there was one.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastGrowth(pub u32);

/// Gives every optimizer the rate of the step. Nothing is touched where the rate is constant.
pub fn set_learning_rates(
    mut envs: Query<(
        &EnvId,
        &mut EnvStream,
        &StepStatus,
        &SeedSlots,
        &mut LastGrowth,
        &mut HostOptimizer,
        &mut SeedOptimizers,
    )>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
) -> Result<(), Failure> {
    let (training, task) = (&experiment.scenario.training, &experiment.task);
    let steps = clock.length().max_steps;
    for (id, mut stream, status, slots, mut last_growth, mut host, mut seeds) in &mut envs {
        if *status != StepStatus::Participating {
            continue;
        }
        if clock.step() == 1 {
            last_growth.0 = 0;
        }
        if slots.records().flatten().any(|seed| seed.stage.is_live()) {
            last_growth.0 = clock.step();
        }
        let rate = |course: LearningRateCourse, rule: &OptimizerConfig| {
            (course != LearningRateCourse::Constant)
                .then(|| rule.lr() * factor(course, clock.step(), steps, last_growth.0))
        };
        let mut set_rates = || -> Result<(), TorchError> {
            let _guard = stream.0.get().enter()?;
            if let Some(rate) = rate(training.host_lr, &task.host_opt) {
                host.0.get().set_lr(rate)?;
            }
            if let Some(rate) = rate(training.seed_lr, &task.seed_opt) {
                let mut seeds = seeds.0.iter_mut().flatten();
                seeds.try_for_each(|seed| seed.get().set_lr(rate))?;
            }
            Ok(())
        };
        set_rates().in_env(id.index)?;
    }
    Ok(())
}

/// Factor of the rate in step `step`, from 1, of an episode of `steps`.
fn factor(course: LearningRateCourse, step: u32, steps: u32, last_growth: u32) -> f64 {
    match course {
        LearningRateCourse::Constant => 1.0,
        LearningRateCourse::Cosine { end } => cosine(end, step - 1, steps - 1),
        LearningRateCourse::CosineAfterGrowth { end } => cosine(end, step - last_growth, steps - last_growth),
        LearningRateCourse::Step { every, factor } => {
            // Exact to the last bit, independent of the platform's pow.
            (0..(step - 1) / every).fold(1.0, |product, _| product * factor)
        }
    }
}

/// Half a cosine from 1 to `end`, after `done` of `all` (Loshchilov and Hutter 2017).
fn cosine(end: f64, done: u32, all: u32) -> f64 {
    if all == 0 {
        return 1.0;
    }
    let share = f64::from(done) / f64::from(all);
    end + (1.0 - end) * 0.5 * (1.0 + libm::cos(PI * share))
}

#[cfg(test)]
mod tests;
