//! Rollouts in, targets out: segments, rollbacks, normalisation, errors.

use super::bench::{Bench, PRUNE, TRUNCATED, assert_close};
use super::tasks::BLUEPRINTS;
use crate::actions::{Head, OPS, PolicyError};
use crate::learner::algorithm::advantages::Unusable;
use crate::learner::algorithm::*;
use crate::policy::fixtures::{self, distance, values};
use crate::scenario::{Algorithm, ImpalaConfig};
use proptest::prelude::*;

#[test]
fn segments_of_one_row_do_not_leak_into_each_other() {
    let truncated = |bootstrap| SegmentEnd::Truncated { bootstrap };
    for (ends, expected) in [
        ([SegmentEnd::Terminal, truncated(4.0)], [1.0625, 0.75, 11.8575, 4.85]),
        ([truncated(3.0), SegmentEnd::Terminal], [2.2775, 3.45, 10.2375, 1.25]),
    ] {
        let mut bench = Bench::new(1, 4);
        (bench.config.gamma, bench.config.gae_lambda) = (0.9, 0.5);
        bench.segment(0, &[(1.0, 0.5), (1.0, 0.25)], ends[0]);
        bench.segment(0, &[(10.0, 1.0), (2.0, 0.75)], ends[1]);
        assert_close(&bench.plain_rollout().batch.advantages, &expected);
    }
}

#[test]
fn steps_of_another_policy_count_by_how_likely_they_are_now_and_far_ones_are_left_out() {
    let mut bench = Bench::new(3, 1);
    bench.config.algorithm = Algorithm::Impala(ImpalaConfig::default());
    for env in 0..3 {
        bench.segment(env, &[(1.0, 0.0)], SegmentEnd::Terminal);
    }
    // Half as likely as by the policy that acted, twice as likely, and hardly at all.
    for (env, log_prob) in [(0, 0.5f32.ln()), (1, 2.0f32.ln()), (2, -3.0)] {
        bench.buffer.rows[env].steps[0].log_probs[Head::Op as usize] = log_prob;
    }

    bench.buffer.leave_out_stale();
    let rollout = bench.plain_rollout();

    assert_close(&rollout.batch.advantages, &[0.5, 1.0]);
    let others = rollout.data.off_policy.expect("of kept rollouts");
    assert_eq!(others.stale_segments, 1);
    // The share: 2.5² / (2 · 4.25)
    let found = [others.behaviour_ratio_mean.0, others.effective_share.0];
    fixtures::assert_close(&found, &[1.25, 0.735_294], 1e-6);
}

#[test]
fn a_rollback_is_charged_to_the_segment_it_ends() {
    let play = |restored: Option<u32>| {
        let mut bench = Bench::new(2, 5);
        for step in 0..5 {
            if let Some(restored) = restored.filter(|_| step == 3) {
                let forfeited = bench.buffer.rollback(0, -10.0, restored).expect("env 0");
                assert_eq!(forfeited, Some(2 - restored as usize));
            }
            bench.step(0, 1.0, 0.0);
            bench.step(1, 0.5 * step as f32, 0.25);
        }
        bench.end(0, SegmentEnd::Truncated { bootstrap: 2.0 });
        bench.end(1, TRUNCATED);
        bench.plain_rollout()
    };

    // Restored to the fresh host: all that led here is lost.
    let rolled_back = play(Some(0));
    assert_close(
        &rolled_back.batch.advantages.narrow(0, 0, 2),
        &[-9.508_200_1, -9.751, -10.0, 0.0, 0.0, 3.915_549, 2.99, 0.0, 0.0, 0.0],
    );

    let of_other = rolled_back.batch.advantages.select(0, 2);
    assert!(
        of_other.equal(&play(None).batch.advantages.select(0, 1)),
        "the other env's row"
    );

    // Steps 1 to 3 of the episode, of which the first was restored.
    let lost = play(Some(1)).batch.advantages.narrow(0, 0, 1);
    assert_close(&lost, &[-8.508_200_1, -9.751, -10.0, 0.0, 0.0]);
}

#[test]
fn the_segment_of_an_env_that_has_failed_counts_for_nothing() {
    let mut with = Bench::new(1, 5);
    for reward in [70.0, -30.0, 5.0] {
        with.step(0, reward, 9.0);
    }
    with.buffer.abandon_segment(0).expect("env 0");
    let mut without = Bench::new(1, 5);
    for bench in [&mut with, &mut without] {
        bench.segment(0, &[(1.0, 0.5), (2.0, 0.25)], SegmentEnd::Truncated { bootstrap: 2.0 });
    }

    let (a, b) = (with.rollout(), without.rollout());

    assert_eq!(values(&a.batch.advantages), values(&b.batch.advantages));
    assert_eq!(values(&a.batch.targets), values(&b.batch.targets));
    assert_eq!(with.state, without.state);
    assert_eq!(a.data.steps_valid, 2);
}

#[test]
fn a_rollback_with_nothing_but_a_pending_step_charges_no_transition() {
    let mut bench = Bench::new(1, 5);
    bench.begin(0, 0.0);

    assert_eq!(bench.buffer.rollback(0, -10.0, 0), Ok(None));
    assert_eq!((bench.buffer.len(0), bench.buffer.segments().count()), (0, 0));
}

#[test]
fn advantage_statistics_pass_over_forced_steps() {
    let mut bench = Bench::new(1, 9);
    bench.config.gamma = 1e-9;
    for reward in [2.0, -1.0, 0.5, 3.0].repeat(2) {
        bench.step(0, reward, 0.0);
    }
    bench.forced_step(0, 100.0, 0.0);
    bench.end(0, SegmentEnd::Terminal);

    let rollout = bench.rollout();

    let free = rollout.batch.advantages.narrow(1, 0, 8);
    assert_close(&free, &[0.577_350_3, -1.402_136_4, -0.412_393_1, 1.237_179_2].repeat(2));
    assert_close(&rollout.batch.actor, &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    assert_close(
        &rollout.batch.value_weights,
        &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.2],
    );
    assert_eq!((rollout.data.steps_actor, rollout.data.steps_valid), (8, 9));
}

/// The second rollout, and the change of unit of the earlier measurements.
#[test]
fn a_new_reward_scale_changes_the_unit_of_stored_values_too() {
    let mut bench = Bench::new(1, 32);
    for reward in [1.0, -2.0, 0.5, 3.0].repeat(8) {
        bench.step(0, reward, 0.0);
    }
    bench.end(0, SegmentEnd::Terminal);
    bench.rollout();
    assert!((bench.state.rewards.scale() - 1.887_458_6).abs() < 1e-6);
    bench.buffer.clear().expect("complete");
    bench.state.values = ValueNormalizer::default();

    bench.step(0, 2.0, 1.0);
    bench.step(0, 5.0, 0.0);
    bench.buffer.rollback(0, -10.0, 1).expect("env 0");
    bench.step(0, 1.0, 0.0);
    bench.end(0, SegmentEnd::Truncated { bootstrap: 2.0 });
    let rollout = bench.plain_rollout();

    assert!((bench.state.rewards.scale() - 1.870_828_7).abs() < 1e-6);
    let unit = 1.887_458_6 / 1.870_828_7;
    // Sequence 0: 2, then the penalty -10; sequence 1: 1, then a bootstrap of 2.
    let (scaled, gamma) = ([1.069_045, -10.0, 0.534_522_5], 0.995);
    let last = scaled[2] + gamma * 2.0 * unit;
    let first = scaled[0] - unit + gamma * 0.98 * scaled[1];
    assert_close(&rollout.batch.advantages, &[first, scaled[1], last, 0.0]);
}

#[test]
fn what_must_not_enter_is_refused_by_name_and_changes_nothing() {
    fn refusal<T, E: ToString>(result: Result<T, E>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }
    let mut bench = Bench::new(1, 2);
    let mut refused = vec![
        refusal(bench.try_begin(9, 0.0, PRUNE, true)),
        refusal(bench.try_begin(0, f32::NAN, PRUNE, true)),
        refusal(bench.try_begin(0, 0.0, PRUNE, false)),
        refusal(bench.complete(0, 1.0)),
    ];
    assert_eq!(bench.buffer.len(0), 0);
    bench.begin(0, 0.0);
    refused.extend([
        refusal(bench.try_begin(0, 0.0, PRUNE, true)),
        refusal(bench.complete(0, f32::INFINITY)),
        refusal(bench.buffer.clear()),
    ]);
    bench.complete(0, 1.0).expect("pending");
    bench.step(0, 1.0, 0.0);
    refused.extend([refusal(bench.try_begin(0, 0.0, PRUNE, true)), refusal(bench.finalize())]);
    bench.end(0, TRUNCATED);
    refused.push(refusal(bench.buffer.end_segments(&[(0, TRUNCATED)])));

    let expected = [
        "env 9 is unknown; the buffer has 1 rows",
        "env 0, step 0: value is not finite",
        "env 0, step 0: the op chosen is not allowed by its own mask",
        "env 0: an outcome was reported, but no step is waiting for one",
        "env 0, step 0: the last step has no outcome yet",
        "env 0, step 0: reward is not finite",
        "env 0, step 0: the last step has no outcome yet",
        "env 0: its row of 2 steps is full",
        "env 0: the segment from step 0 on has not ended",
        "env 0: no segment is open",
    ];
    assert_eq!(refused, expected);
}

/// A damaged checkpoint: an action with such masks is refused at once.
#[test]
fn an_action_that_its_masks_forbid_is_an_error_and_not_a_small_number() {
    let mut bench = Bench::new(3, 2);
    for env in 0..3 {
        bench.segment(env, &[(1.0, 0.0), (1.0, 0.0)], TRUNCATED);
    }
    // Which blueprints there are does not matter to pruning.
    let masks = &bench.buffer.cells.masks;
    let _ = masks.get(0).narrow(0, OPS as i64, BLUEPRINTS as i64).fill_(0);
    // The second env has no choice left.
    let _ = masks.narrow(0, 2, 2).fill_(0);

    let refusal = bench.finalize().err();

    let masked = PolicyError::MaskedActionEvaluated { count: 2 };
    assert_eq!(refusal, Some(LearnerError::Policy(masked)));
}

/// Every env was rolled back before its first decision.
#[test]
fn a_rollout_without_a_step_isnt_a_mistake() {
    let mut bench = Bench::new(2, 4);

    let unusable = bench.finalize().expect("it is finished").map(|_| ());

    assert_eq!(unusable, Err(Unusable::Empty));
    assert_eq!(bench.buffer.valid_raw_observations().expect("none").size(), [0, 2]);
}

#[test]
fn with_few_free_steps_only_the_critic_learns() {
    let mut bench = Bench::new(1, 4);
    bench.segment(0, &[(1.0, 0.0)], TRUNCATED);

    let rollout = bench.plain_rollout();

    assert_close(&rollout.batch.actor, &[0.0]);
    assert_close(&rollout.batch.value_weights, &[1.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Rows of unequal length in any order: every env's advantages and targets are its own.
    #[test]
    fn permuting_envs_permutes_what_they_learn(
        lengths in prop::collection::vec(1usize..5, 2..5),
        rewards in prop::collection::vec(-3.0f32..3.0, 20),
    ) {
        let envs = lengths.len();
        let run = |order: &[usize]| {
            let mut bench = Bench::new(envs, 5);
            for (row, &env) in order.iter().enumerate() {
                for step in 0..lengths[env] {
                    bench.step(row, rewards[env * 5 + step], rewards[env * 5 + 4]);
                }
                bench.end(row, SegmentEnd::Truncated { bootstrap: rewards[env * 5] });
            }
            bench.plain_rollout().batch
        };

        let a = run(&(0..envs).collect::<Vec<_>>());
        let b = run(&(0..envs).rev().collect::<Vec<_>>());

        for (one, other) in [(&a.advantages, &b.advantages), (&a.targets, &b.targets)] {
            let difference = distance(one, &other.flip([0]));
            prop_assert!(difference < 1e-4, "{difference}");
        }
    }
}
