//! What a step is credited with, and which of its heads are; what is predicted of its seeds.

use tch::Kind;

use super::bench::{Bench, TRUNCATED, assert_close};
use super::read;
use crate::controller::Head;
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
    let plain = bench.rollout();
    bench.config.advantage_baseline = AdvantageBaseline::LeaveOneOut;

    let rollout = bench.rollout();

    let free = rollout.batch.actor.to_kind(Kind::Float);
    let expected = [
        [2.0 - 8.0 / 3.0, 1.0 - 3.0, 6.0 - 1.5],
        [-1.0 - 11.0 / 3.0, 3.0 - 1.0, 0.0 - 4.5],
        // Nobody is credited with a forced step.
        [5.0 - 5.0 / 3.0, 0.0, 3.0 - 3.0],
        [4.0 - 6.0 / 3.0, 0.0, 0.0],
    ];
    assert_close(&(&rollout.batch.advantages * free), &expected.concat());
    assert_eq!(read(&rollout.batch.targets), read(&plain.batch.targets), "the critic's");
    let deviation = rollout.metrics.advantages.adv_baseline_std.expect("it varies").0;
    assert!(deviation > 0.5, "{deviation}");
    assert_eq!(plain.metrics.advantages.adv_baseline_std, None);
}

#[test]
fn the_only_env_has_no_baseline_but_its_critic() {
    let mut bench = Bench::new(1, 2);
    bench.config.advantage_baseline = AdvantageBaseline::LeaveOneOut;
    bench.config.gamma = 1e-9;
    bench.step(0, 2.0, 0.5);
    bench.step(0, -1.0, 0.0);
    bench.end(0, SegmentEnd::Terminal);

    assert_close(&bench.rollout().batch.advantages, &[1.5, -1.0]);
}

/// By step: the seed in the slot at the decision, and what was measured at the end of the step.
fn play_contributions(bench: &mut Bench, steps: &[(Option<u32>, Option<f32>)]) {
    for &(seed, contribution) in steps {
        (bench.seed, bench.contribution) = (seed, contribution);
        bench.step(0, 1.0, 0.0);
    }
    bench.end(0, TRUNCATED);
}

#[test]
fn a_seeds_contribution_some_steps_later_is_a_target_where_it_is_still_that_seed() {
    let mut bench = Bench::new(1, 6);
    bench.config.aux_horizon = 2;
    let (a, b) = (Some(0), Some(1));
    let life = [
        (None, None),
        (a, None),
        (a, Some(1.5)),
        (a, Some(20.0)),
        (b, Some(4.0)),
        (b, Some(-2.0)),
    ];
    play_contributions(&mut bench, &life);

    let batch = bench.rollout().batch;

    // Step 0 had no seed, steps 2 and 3 another one, and behind the last two there is nothing.
    assert_close(&batch.contribution_mask, &[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    assert_close(&batch.contributions.narrow(1, 1, 1), &[10.0]);
    bench.config.aux_horizon = 0;
    let batch = bench.rollout().batch;
    assert_close(&batch.contribution_mask, &[0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
    assert_close(&batch.contributions.narrow(1, 2, 4), &[1.5, 10.0, 4.0, -2.0]);
}

#[test]
fn no_contribution_is_predicted_beyond_the_end_of_a_segment() {
    let mut bench = Bench::new(1, 4);
    bench.config.aux_horizon = 1;
    let seed = Some(3);
    play_contributions(&mut bench, &[(seed, Some(1.0)), (seed, Some(2.0))]);
    play_contributions(&mut bench, &[(seed, Some(3.0)), (seed, Some(4.0))]);

    let batch = bench.rollout().batch;

    assert_close(&batch.contribution_mask, &[1.0, 0.0, 1.0, 0.0]);
    assert_close(&batch.contributions, &[2.0, 0.0, 4.0, 0.0]);
}

/// The op and the slot of a prune matter; of its ramp nothing does where the seed has no amplitude.
#[test]
fn heads_that_made_no_difference_are_left_out_of_what_the_actor_learns() {
    let mut bench = Bench::new(1, 2);
    bench.step(0, 1.0, 0.0);
    for head in [Head::AlphaSpeed, Head::AlphaCurve] {
        bench.causal[head as usize] = false;
    }
    bench.step(0, 1.0, 0.0);
    bench.end(0, TRUNCATED);

    let causal = bench.rollout().batch.causal;

    // Slot, blueprint, style, tempo, alpha target, alpha speed, alpha curve, op.
    assert_close(&causal.select(1, 0), &[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    assert_close(&causal.select(1, 1), &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
}
