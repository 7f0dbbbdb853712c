//! The credit of a step.

use tch::Kind;

use super::bench::{Bench, assert_close};
use crate::learner::algorithm::*;
use crate::scenario::AdvantageBaseline;

/// Steps 1 and 3 of the episode leave all three envs a choice, step 2 only two of them; the fourth env has ended by step 2.
#[test]
fn a_baseline_of_the_other_envs_is_their_mean_where_they_had_a_choice_in_the_same_step() {
    let mut bench = Bench::new(4, 3);
    bench.config.gamma = 1e-9;
    let rewards = [[2.0, 1.0, 6.0], [-1.0, 3.0, 0.0], [5.0, 9.0, 3.0], [4.0, 0.0, 0.0]];
    for (env, rewards) in rewards.iter().enumerate() {
        for (step, &reward) in rewards.iter().enumerate().take(if env == 3 { 1 } else { 3 }) {
            if (env, step) == (2, 1) {
                bench.forced_step(env, reward, 0.0);
            } else {
                bench.step(env, reward, 0.0);
            }
        }
        bench.end(env, SegmentEnd::Terminal);
    }
    let plain = bench.plain_rollout();
    bench.config.advantage_baseline = AdvantageBaseline::LeaveOneOut;

    let rollout = bench.plain_rollout();

    let free = rollout.batch.actor.to_kind(Kind::Float);
    let expected = [
        [2.0 - 8.0 / 3.0, 1.0 - 3.0, 6.0 - 1.5],
        [-1.0 - 11.0 / 3.0, 3.0 - 1.0, 0.0 - 4.5],
        // A forced step is credited to no choice.
        [5.0 - 5.0 / 3.0, 0.0, 3.0 - 3.0],
        [4.0 - 6.0 / 3.0, 0.0, 0.0],
    ];
    assert_close(&(&rollout.batch.advantages * free), &expected.concat());
    assert!(rollout.batch.targets.equal(&plain.batch.targets), "the critic's");
}

#[test]
fn the_only_env_has_no_baseline_but_its_critic() {
    let mut bench = Bench::new(1, 2);
    bench.config.advantage_baseline = AdvantageBaseline::LeaveOneOut;
    bench.config.gamma = 1e-9;
    bench.segment(0, &[(2.0, 0.5), (-1.0, 0.0)], SegmentEnd::Terminal);

    assert_close(&bench.plain_rollout().batch.advantages, &[1.5, -1.0]);
}
