//! Learning rates over an episode: a factor per step, applied to the optimizers of host and seeds before the first batch.

use std::f64::consts::PI;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::clock::RunClock;
use crate::env::{Experiment, HostOptimizer, SeedOptimizers, SeedSlots, StepStatus};
use crate::scenario::{LearningRateCourse, OptimizerConfig};

/// The last step of the episode that began while a seed developed; 0 before there was one.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastGrowth(pub u32);

/// Gives every optimizer the rate of the step. Nothing is touched where the rate is constant.
pub fn set_learning_rates(
    mut envs: Query<(
        &StepStatus,
        &SeedSlots,
        &mut LastGrowth,
        &mut HostOptimizer,
        &mut SeedOptimizers,
    )>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
) {
    let (training, task) = (&experiment.scenario.training, &experiment.task);
    let steps = clock.length().max_steps;
    for (status, slots, mut last_growth, mut host, mut seeds) in &mut envs {
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
        if let Some(rate) = rate(training.host_lr, &task.host_opt) {
            host.0.get().set_lr(rate);
        }
        if let Some(rate) = rate(training.seed_lr, &task.seed_opt) {
            for seed in seeds.0.iter_mut().flatten() {
                seed.get().set_lr(rate);
            }
        }
    }
}

/// What the rate is multiplied by in step `step`, from 1, of an episode of `steps`.
fn factor(course: LearningRateCourse, step: u32, steps: u32, last_growth: u32) -> f64 {
    match course {
        LearningRateCourse::Constant => 1.0,
        LearningRateCourse::Cosine { end } => cosine(end, step - 1, steps - 1),
        LearningRateCourse::CosineAfterGrowth { end } => cosine(end, step - last_growth, steps - last_growth),
        LearningRateCourse::Step { every, factor } => {
            // Exact to the last bit whatever the platform's pow.
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
mod tests {
    use super::*;

    fn factors(course: LearningRateCourse, last_growth: impl Fn(u32) -> u32) -> Vec<f64> {
        (1..=5)
            .map(|step| factor(course, step, 5, last_growth(step)))
            .map(|factor| (factor * 1e6).round() / 1e6)
            .collect()
    }

    #[test]
    fn a_cosine_begins_whole_and_ends_at_its_share() {
        let course = LearningRateCourse::Cosine { end: 0.1 };
        assert_eq!(factors(course, |_| 0), [1.0, 0.868_198, 0.55, 0.231_802, 0.1]);
    }

    #[test]
    fn a_cosine_of_one_step_is_whole() {
        assert_eq!(factor(LearningRateCourse::Cosine { end: 0.0 }, 1, 1, 0), 1.0);
    }

    #[test]
    fn a_cosine_after_growth_waits_for_the_last_seed_and_restarts_with_a_late_one() {
        let course = LearningRateCourse::CosineAfterGrowth { end: 0.0 };
        assert_eq!(factors(course, |step| step.min(3)), [1.0, 1.0, 1.0, 0.5, 0.0]);
        assert_eq!(
            factors(course, |step| if step < 4 { 1 } else { 4 }),
            [1.0, 0.853_553, 0.5, 1.0, 0.0]
        );
        assert_eq!(factors(course, |_| 0)[4], 0.0);
    }

    #[test]
    fn a_stepped_rate_falls_by_its_factor_every_so_many_steps() {
        let course = LearningRateCourse::Step { every: 2, factor: 0.1 };
        assert_eq!(factors(course, |_| 0), [1.0, 1.0, 0.1, 0.1, 0.01]);
    }
}
