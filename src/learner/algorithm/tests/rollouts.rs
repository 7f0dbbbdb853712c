//! Rollouts in, targets out: segments, rollbacks, normalisation, errors.

use proptest::prelude::*;
use tch::{Device, Kind, Tensor};

use super::read;
use super::tasks::{BLUEPRINTS, CueTask, Task};
use crate::controller::{HEADS, Head, HeadIndices, RELEVANCE, RecurrentState, ValueOutput};
use crate::growth::LifecycleOp;
use crate::learner::algorithm::finalize::{PreparedRollout, Unusable, finalize};
use crate::learner::algorithm::*;
use crate::scenario::{AdvantageBaseline, AdvantageNorm, LearnerConfig, RewardNormMode, RollbackCredit, ValueNormMode};
use crate::telemetry::Num;

const PRUNE: [u8; HEADS] = [0, 0, 2, 1, 2, 0, 0, LifecycleOp::Prune.code() as u8];

/// Rows of steps with one decision each, in units of raw reward.
struct Bench {
    buffer: RolloutBuffer,
    task: CueTask,
    config: LearnerConfig,
    rewards: RewardNormalizer,
    values: ValueNormalizer,
    /// Heads that matter to what is executed.
    causal: [bool; HEADS],
    /// What the slot holds, and what is measured of it.
    seed: Option<u32>,
    contribution: Option<f32>,
}

impl Bench {
    /// Nothing is normalised.
    fn new(envs: usize, steps: usize) -> Self {
        let mut config = LearnerConfig {
            adv_norm: AdvantageNorm::Off,
            min_actor_steps: 1,
            norm_min_count: 2,
            ..LearnerConfig::default()
        };
        config.reward_norm.mode = RewardNormMode::Off;
        config.value_norm.mode = ValueNormMode::Off;
        Self::with(envs, steps, config)
    }

    fn with(envs: usize, steps: usize, config: LearnerConfig) -> Self {
        let shape = BufferShape {
            envs,
            steps,
            observation: 2,
            slots: 1,
            blueprints: BLUEPRINTS,
            state: vec![[1, 1]],
            chunk_length: config.chunk_length.map_or(steps, |length| length as usize),
        };
        Self {
            buffer: RolloutBuffer::new(shape, Device::Cpu).expect("memory"),
            task: CueTask::new(envs),
            rewards: RewardNormalizer::new(config.reward_norm.mode),
            values: ValueNormalizer::new(config.value_norm.mode, config.norm_min_count),
            causal: RELEVANCE[LifecycleOp::Prune.code()],
            seed: None,
            contribution: None,
            config,
        }
    }

    fn try_begin(&mut self, env: usize, value: f32, indices: HeadIndices, is_free: bool) -> Result<(), BufferError> {
        let at = self.buffer.len(env) as f64;
        let observation = Tensor::full([1, 2], at, (Kind::Float, Device::Cpu));
        let state = RecurrentState(vec![Tensor::full([1, 1, 1], at, (Kind::Float, Device::Cpu))]);
        let decided = DecidedStep {
            env,
            round: 0,
            step: self.buffer.len(env) as u32 + 1,
            indices,
            log_probs: [0.0; HEADS],
            value,
            // Step 5 of a cue task leaves a choice, step 0 does not.
            masks: self.task.masks(0, if is_free { 5 } else { 0 }),
            seeds: &[self.seed],
        };
        self.buffer.begin_steps(
            &[decided],
            &StepTensors {
                observations: &observation,
                raw_observations: &observation,
                blueprints: &Tensor::full([1, 1], -1, (Kind::Int64, Device::Cpu)),
                state: &state,
            },
        )
    }

    fn begin(&mut self, env: usize, value: f32) {
        self.try_begin(env, value, PRUNE, true).expect("a sound decision");
    }

    fn step(&mut self, env: usize, reward: f32, value: f32) {
        self.begin(env, value);
        self.complete(env, reward).expect("pending");
    }

    fn forced_step(&mut self, env: usize, reward: f32, value: f32) {
        let wait = [0, 0, 2, 1, 2, 0, 0, 0];
        self.try_begin(env, value, wait, false).expect("a sound decision");
        self.complete(env, reward).expect("pending");
    }

    fn complete(&mut self, env: usize, reward: f32) -> Result<(), BufferError> {
        self.buffer.complete_steps(&[StepOutcome {
            env,
            reward,
            effective_op: LifecycleOp::Prune,
            causal: self.causal,
            contributions: &[self.contribution],
        }])
    }

    fn end(&mut self, env: usize, end: SegmentEnd) {
        self.buffer.end_segments(&[(env, end)]).expect("an open segment");
    }

    fn finalize(&mut self) -> Result<Result<PreparedRollout, Unusable>, LearnerError> {
        let head = ValueOutput {
            weight: Tensor::ones([1, 2], (Kind::Float, Device::Cpu)),
            bias: Tensor::zeros([1], (Kind::Float, Device::Cpu)),
        };
        finalize(
            &mut self.buffer,
            &mut self.rewards,
            &mut self.values,
            &head,
            &self.config,
        )
    }

    fn rollout(&mut self) -> PreparedRollout {
        self.finalize().expect("finished").expect("usable")
    }
}

#[track_caller]
fn assert_close(tensor: &Tensor, expected: &[f64]) {
    let actual = read(tensor);
    assert_eq!(actual.len(), expected.len(), "{actual:?}");
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() < 1e-5, "{actual:?} != {expected:?}");
    }
}

const TRUNCATED: SegmentEnd = SegmentEnd::Truncated { bootstrap: 0.0 };

#[test]
fn segments_of_one_row_do_not_leak_into_each_other() {
    let rows = [
        (
            [SegmentEnd::Terminal, SegmentEnd::Truncated { bootstrap: 4.0 }],
            [1.0625, 0.75, 11.8575, 4.85],
        ),
        (
            [SegmentEnd::Truncated { bootstrap: 3.0 }, SegmentEnd::Terminal],
            [2.2775, 3.45, 10.2375, 1.25],
        ),
    ];
    for (ends, expected) in rows {
        let mut bench = Bench::new(1, 4);
        (bench.config.gamma, bench.config.gae_lambda) = (0.9, 0.5);
        for (index, (reward, value)) in [(1.0, 0.5), (1.0, 0.25), (10.0, 1.0), (2.0, 0.75)]
            .into_iter()
            .enumerate()
        {
            bench.step(0, reward, value);
            if index % 2 == 1 {
                bench.end(0, ends[index / 2]);
            }
        }
        assert_close(&bench.rollout().batch.advantages, &expected);
    }
}

#[test]
fn a_rollback_is_charged_to_the_segment_it_ends() {
    let play = |rolls_back: bool, credit| {
        let mut bench = Bench::new(2, 5);
        for step in 0..5 {
            if step == 3 && rolls_back {
                let forfeited = bench.buffer.rollback(0, -10.0, credit, 1).expect("env 0");
                let expected = match credit {
                    RollbackCredit::PenalizeForfeit => 2,
                    RollbackCredit::PenalizeLost => 1,
                    RollbackCredit::PenalizeKeep | RollbackCredit::Invalidate => 0,
                };
                assert_eq!(forfeited, Some(expected));
            }
            bench.step(0, 1.0, 0.0);
            bench.step(1, 0.5 * step as f32, 0.25);
        }
        bench.end(0, SegmentEnd::Truncated { bootstrap: 2.0 });
        bench.end(1, TRUNCATED);
        let charges = bench.buffer.charges;
        (bench.rollout(), charges)
    };

    let (forfeit, charges) = play(true, RollbackCredit::PenalizeForfeit);
    assert_close(
        &forfeit.batch.advantages.narrow(0, 0, 2),
        &[-9.508_200_1, -9.751, -10.0, 0.0, 0.0, 3.915_549, 2.99, 0.0, 0.0, 0.0],
    );
    assert_eq!((charges.rollback_attributed, charges.rollback_steps_forfeited), (1, 2));

    let (untouched, _) = play(false, RollbackCredit::PenalizeForfeit);
    assert_eq!(
        read(&forfeit.batch.advantages.select(0, 2)),
        read(&untouched.batch.advantages.select(0, 1)),
        "the other env's row"
    );

    // Steps 1 to 3 of the episode, of which the first was restored.
    let (lost, charges) = play(true, RollbackCredit::PenalizeLost);
    assert_eq!(
        lost.metrics.returns.reward_mean,
        Some(Num((1.0 + 0.0 - 10.0 + 1.0 + 1.0 + 5.0) / 10.0))
    );
    assert_eq!((charges.rollback_attributed, charges.rollback_steps_forfeited), (1, 1));

    let (keep, _) = play(true, RollbackCredit::PenalizeKeep);
    assert_eq!(
        keep.metrics.returns.reward_mean,
        Some(Num((1.0 + 1.0 - 10.0 + 1.0 + 1.0 + 5.0) / 10.0))
    );
}

#[test]
fn an_invalidated_segment_counts_for_nothing() {
    let mut config = Bench::new(1, 5).config;
    config.reward_norm.mode = RewardNormMode::Rms;
    config.value_norm.mode = ValueNormMode::Popart;
    let mut with = Bench::with(1, 5, config.clone());
    for reward in [70.0, -30.0, 5.0] {
        with.step(0, reward, 9.0);
    }
    with.buffer
        .rollback(0, -10.0, RollbackCredit::Invalidate, 0)
        .expect("env 0");
    assert_eq!(with.buffer.charges.rollback_steps_invalidated, 3);
    let mut without = Bench::with(1, 5, config);
    for bench in [&mut with, &mut without] {
        bench.step(0, 1.0, 0.5);
        bench.step(0, 2.0, 0.25);
        bench.end(0, SegmentEnd::Truncated { bootstrap: 2.0 });
    }

    let (a, b) = (with.rollout(), without.rollout());

    assert_eq!(read(&a.batch.advantages), read(&b.batch.advantages));
    assert_eq!(read(&a.batch.targets), read(&b.batch.targets));
    assert_eq!(with.rewards, without.rewards);
    assert_eq!(with.values, without.values);
    assert_eq!((a.metrics.data.segments_invalid, a.metrics.data.steps_valid), (1, 2));
}

#[test]
fn a_rollback_with_nothing_but_a_pending_step_blames_nobody() {
    let mut bench = Bench::new(1, 5);
    bench.begin(0, 0.0);

    let forfeited = bench.buffer.rollback(0, -10.0, RollbackCredit::PenalizeForfeit, 0);

    assert_eq!(forfeited, Ok(None));
    assert_eq!(bench.buffer.len(0), 0);
    assert_eq!(bench.buffer.segments().count(), 0);
    assert_eq!(bench.buffer.charges.rollback_unattributed, 1);
}

#[test]
fn advantage_statistics_pass_over_forced_steps() {
    let mut bench = Bench::new(1, 5);
    (bench.config.adv_norm, bench.config.gamma) = (AdvantageNorm::Rollout, 1e-9);
    for reward in [2.0, -1.0, 0.5, 3.0] {
        bench.step(0, reward, 0.0);
    }
    bench.forced_step(0, 100.0, 0.0);
    bench.end(0, SegmentEnd::Terminal);

    let rollout = bench.rollout();

    let free = rollout.batch.advantages.narrow(1, 0, 4);
    assert_close(&free, &[0.577_350_3, -1.402_136_4, -0.412_393_1, 1.237_179_2]);
    assert_close(&rollout.batch.actor, &[1.0, 1.0, 1.0, 1.0, 0.0]);
    assert_close(&rollout.batch.value_weights, &[1.0, 1.0, 1.0, 1.0, 0.2]);
    assert_eq!(
        (rollout.metrics.data.steps_actor, rollout.metrics.data.steps_valid),
        (4, 5)
    );
}

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

/// The second rollout, and the change of unit of what was measured before.
#[test]
fn a_new_reward_scale_changes_the_unit_of_stored_values_too() {
    let mut config = Bench::new(1, 4).config;
    config.reward_norm.mode = RewardNormMode::Rms;
    let mut bench = Bench::with(1, 4, config);
    for reward in [1.0, -2.0, 0.5, 3.0] {
        bench.step(0, reward, 0.0);
    }
    bench.end(0, SegmentEnd::Terminal);
    let scale = |rollout: &PreparedRollout| rollout.metrics.returns.reward_scale.expect("measured").0;
    assert!((scale(&bench.rollout()) - 1.887_458_6).abs() < 1e-6);
    bench.buffer.clear().expect("complete");

    bench.step(0, 2.0, 1.0);
    bench.step(0, 5.0, 0.0);
    bench
        .buffer
        .rollback(0, -10.0, RollbackCredit::PenalizeKeep, 0)
        .expect("env 0");
    bench.step(0, 1.0, 0.0);
    bench.end(0, SegmentEnd::Truncated { bootstrap: 2.0 });
    let rollout = bench.rollout();

    assert!((scale(&rollout) - 1.791_182_1).abs() < 1e-6);
    let unit = 1.887_458_6 / 1.791_182_1;
    // Sequence 0: 2, then the penalty -10; sequence 1: 1, then a bootstrap of 2.
    let (scaled, gamma) = ([1.116_581_1, -10.0, 0.558_290_5], 0.995);
    let last = scaled[2] + gamma * 2.0 * unit;
    let first = scaled[0] - unit + gamma * 0.98 * scaled[1];
    assert_close(&rollout.batch.advantages, &[first, scaled[1], last, 0.0]);
    assert_close(&rollout.batch.old_values.narrow(0, 0, 1), &[unit, 0.0]);
}

#[test]
fn chunks_start_from_stored_states_and_segments_from_zero() {
    let mut bench = Bench::new(1, 7);
    bench.config.chunk_length = Some(2);
    bench = Bench::with(1, 7, bench.config);
    for _ in 0..5 {
        bench.step(0, 1.0, 0.0);
    }
    bench.end(0, TRUNCATED);
    for _ in 0..2 {
        bench.step(0, 1.0, 0.0);
    }
    bench.end(0, TRUNCATED);

    let rollout = bench.rollout();

    // The bench's state at a step is the step's number in its row.
    assert_close(&rollout.batch.initial.0[0], &[0.0, 2.0, 4.0, 0.0]);
    assert_close(&rollout.batch.valid, &[1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
    assert_close(
        &rollout.batch.observations.select(2, 0),
        &[0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 5.0, 6.0],
    );
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

#[test]
fn what_must_not_enter_is_refused_by_name_and_changes_nothing() {
    let mut bench = Bench::new(1, 2);
    let (env, step) = (0, 0);
    assert_eq!(
        bench.try_begin(9, 0.0, PRUNE, true),
        Err(BufferError::UnknownEnv { env: 9, envs: 1 })
    );
    let field = "value";
    assert_eq!(
        bench.try_begin(0, f32::NAN, PRUNE, true),
        Err(BufferError::NonFinite { env, step, field })
    );
    let head = Head::Op;
    assert_eq!(
        bench.try_begin(0, 0.0, PRUNE, false),
        Err(BufferError::IllegalAction { env, step, head }),
        "only waiting was allowed"
    );
    assert_eq!(bench.buffer.len(0), 0);

    assert_eq!(bench.complete(0, 1.0), Err(BufferError::NoPendingStep { env }));
    bench.begin(0, 0.0);
    assert_eq!(
        bench.try_begin(0, 0.0, PRUNE, true),
        Err(BufferError::PendingStep { env, step })
    );
    let field = "reward";
    assert_eq!(
        bench.complete(0, f32::INFINITY),
        Err(BufferError::NonFinite { env, step, field })
    );
    assert_eq!(bench.buffer.clear(), Err(BufferError::PendingStep { env, step }));
    bench.complete(0, 1.0).expect("pending");

    bench.step(0, 1.0, 0.0);
    let capacity = 2;
    assert_eq!(
        bench.try_begin(0, 0.0, PRUNE, true),
        Err(BufferError::RowFull { env, capacity })
    );
    let start = 0;
    assert_eq!(
        bench.finalize().map(|_| ()),
        Err(LearnerError::Buffer(BufferError::OpenSegment { env, start }))
    );
    bench.end(0, TRUNCATED);
    assert_eq!(
        bench.buffer.end_segments(&[(0, TRUNCATED)]),
        Err(BufferError::SegmentClosed { env })
    );
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

/// Every env was rolled back before its first decision.
#[test]
fn a_rollout_without_a_step_is_no_mistake() {
    let mut bench = Bench::new(2, 4);

    let unusable = bench.finalize().expect("it is finished").map(|_| ());

    assert_eq!(unusable, Err(Unusable::Empty));
    assert_eq!(bench.buffer.valid_raw_observations().expect("none").size(), [0, 2]);
}

#[test]
fn with_few_free_steps_only_the_critic_learns() {
    let mut bench = Bench::new(1, 4);
    bench.config.min_actor_steps = 8;
    bench.step(0, 1.0, 0.0);
    bench.end(0, TRUNCATED);

    let rollout = bench.rollout();

    assert!(rollout.actor_skipped);
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
            let mut config = LearnerConfig { min_actor_steps: 1, norm_min_count: 2, ..LearnerConfig::default() };
            config.reward_norm.mode = RewardNormMode::ReturnStd;
            let mut bench = Bench::with(envs, 5, config);
            for (row, &env) in order.iter().enumerate() {
                for step in 0..lengths[env] {
                    bench.step(row, rewards[env * 5 + step], rewards[env * 5 + 4]);
                }
                bench.end(row, SegmentEnd::Truncated { bootstrap: rewards[env * 5] });
            }
            bench.rollout().batch
        };
        let straight: Vec<usize> = (0..envs).collect();
        let reversed: Vec<usize> = straight.iter().rev().copied().collect();

        let (a, b) = (run(&straight), run(&reversed));

        for (one, other) in [(&a.advantages, &b.advantages), (&a.targets, &b.targets), (&a.old_values, &b.old_values)] {
            let turned = read(&other.flip([0]));
            for (x, y) in read(one).iter().zip(turned) {
                prop_assert!((x - y).abs() < 1e-4, "{x} {y}");
            }
        }
    }
}
