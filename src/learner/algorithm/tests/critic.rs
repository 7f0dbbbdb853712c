//! The critic alone: targets afresh, steps that leave the policy as it is, rollouts that last.

use tch::{Device, Kind, Tensor};

use super::training::{Training, small_config};
use super::{cue, read};
use crate::controller::{ParamGroup, RecurrentState, TrainablePolicy, ValueSequence};
use crate::learner::algorithm::critic::CriticPasses;
use crate::learner::algorithm::optimizer::PolicyOptimizer;
use crate::learner::algorithm::rehearsal::CriticRollout;
use crate::learner::algorithm::*;
use crate::scenario::{CriticConfig, EpisodeEnd, LearnerConfig};
use crate::telemetry::{LearnerUpdate, Num, UpdateSkip};
use crate::torch::{HostSyncCounter, Implementation, copy_into};

fn with_critic(epochs: u32, rollouts: u32) -> LearnerConfig {
    LearnerConfig {
        critic: CriticConfig {
            epochs,
            rollouts,
            lr: Some(3e-3),
        },
        ..small_config()
    }
}

fn params(training: &Training<super::CueTask>, is_critic: bool) -> Vec<f64> {
    let params = training.policy.params();
    let of_critic = params
        .iter()
        .filter(|param| (param.group == ParamGroup::Critic) == is_critic);
    of_critic.flat_map(|param| read(&param.tensor)).collect()
}

/// The divergence stops the policy at its second step; the critic goes on, and moves nothing but itself.
#[test]
fn the_critic_goes_on_where_the_divergence_stops_the_policy() {
    let play = |epochs| {
        let mut training = cue(LearnerConfig {
            target_kl: Some(1e-12),
            ..with_critic(epochs, 1)
        });
        training.play();
        let update = training.learn();
        (training, update)
    };
    let (without, stopped) = play(0);
    let (with, update) = play(25);

    assert_eq!((stopped.steps_taken, stopped.critic_steps), (1, None));
    assert_eq!((update.steps_taken, update.critic_steps), (1, Some(25)));
    assert_eq!(params(&with, false), params(&without, false), "all but the critic");
    assert_ne!(params(&with, true), params(&without, true));
    let [first, last] = [update.critic.critic_loss_first, update.critic.critic_loss_last];
    assert!(
        first.zip(last).is_some_and(|(first, last)| last.0 < 0.8 * first.0),
        "{first:?} {last:?}"
    );
}

/// By hand, with a critic that says 0 but behind the last step, which it sees in place of the estimate of the time.
#[test]
fn targets_are_returns_under_the_present_critic_in_present_units() {
    let mut training = cue(LearnerConfig {
        gamma: 0.9,
        gae_lambda: 0.8,
        episode_end: EpisodeEnd::Truncated,
        ..with_critic(1, 1)
    });
    training.play();
    let config = training.learner.config().clone();
    let critic = training.policy.value_output();
    for tensor in [&critic.weight, &critic.bias] {
        copy_into(tensor, &tensor.zeros_like(), false).expect("copy");
    }
    copy_into(&critic.bias, &Tensor::from_slice(&[0.5f32]), false).expect("copy");
    let rollout = CriticRollout::gather(&training.buffer, 1.0, &config).expect("memory");
    let passes = CriticPasses {
        config: &config,
        rollouts: vec![&rollout],
        units: ValueUnits {
            mean: 1.0,
            deviation: 2.0,
        },
        reward_scale: 2.0,
        lr: 1e-3,
        reads: &HostSyncCounter::default(),
    };

    let targets = read(&passes.targets(&rollout, &training.policy).expect("no device fails"));

    // The critic says 0.5, raw 2. The stored estimate of what follows is twice as many of the present, smaller units.
    let steps = rollout.steps();
    let stored = training
        .buffer
        .segments()
        .next()
        .and_then(|segment| segment.closed)
        .expect("it ended");
    let rewards: Vec<f64> = training.buffer.rows[0]
        .steps
        .iter()
        .map(|step| f64::from(step.reward_raw) / 2.0)
        .collect();
    let (mut next, mut advantage) = (f64::from(stored.bootstrap()) / 2.0, 0.0);
    for step in (0..steps).rev() {
        advantage = rewards[step] + 0.9 * next - 2.0 + 0.9 * 0.8 * advantage;
        next = 2.0;
        let expected = (advantage + 2.0 - 1.0) / 2.0;
        assert!(
            (targets[step] - expected).abs() < 1e-5,
            "{step}: {} {expected}",
            targets[step]
        );
    }
}

/// Two steps of one env that was truncated, and what it saw then.
#[test]
fn what_followed_a_truncated_segment_stands_behind_its_last_step() {
    let mut training = cue(LearnerConfig {
        episode_end: EpisodeEnd::Truncated,
        chunk_length: Some(5),
        ..with_critic(1, 1)
    });
    training.play();
    let width = training.buffer.shape().observation;
    let following = Following {
        observation: vec![7.0; width],
        blueprints: vec![3; training.buffer.shape().slots],
    };
    training.buffer.note_following(0, following).expect("env 0");

    let config = training.learner.config().clone();
    let rollout = CriticRollout::gather(&training.buffer, 1.0, &config).expect("memory");

    // 12 steps in chunks of 5, 5 and 2; the last one has one more.
    assert_eq!(rollout.lengths[..3], [5, 5, 3]);
    assert_eq!(rollout.lengths[3..6], [5, 5, 2]);
    assert_eq!(rollout.real_steps(2), 2);
    let behind = rollout.observations.select(0, 2).select(0, 2);
    assert_eq!(read(&behind), vec![7.0; width]);
    assert_eq!(read(&rollout.weights.select(0, 2))[2..], [0.0; 3]);
}

#[test]
fn saved_rollouts_come_back_as_they_were_and_damaged_ones_are_named() {
    let mut training = cue(with_critic(2, 3));
    for _ in 0..3 {
        training.play();
        training.learn();
    }
    let saved = training.learner.rehearsal_tensors().expect("no device fails");
    let kept: Vec<&str> = saved
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| name.ends_with("ends"))
        .collect();
    assert_eq!(
        kept,
        ["critic_rollout.0.ends", "critic_rollout.1.ends"],
        "two beside the next one"
    );

    let mut fresh = cue(with_critic(2, 3));
    let state = training.learner.state();
    let all: Vec<(String, Tensor)> = training.learner.state_tensors().into_iter().chain(saved).collect();
    fresh.learner.restore(&state, &all).expect("the same learner");
    let again = fresh.learner.rehearsal_tensors().expect("no device fails");
    for ((name, old), (other, new)) in all.iter().filter(|(name, _)| name.starts_with("critic_")).zip(&again) {
        assert_eq!((name, read(old)), (other, read(new)));
    }

    let damaged: Vec<(String, Tensor)> = all
        .into_iter()
        .filter(|(name, _)| !name.ends_with("0.rewards"))
        .collect();
    let refused = fresh.learner.restore(&state, &damaged);
    assert!(
        matches!(&refused, Err(LearnerError::Incompatible(lines)) if lines[0].contains("critic_rollout.0")),
        "{refused:?}"
    );
}

#[test]
fn a_learner_with_a_rehearsing_critic_is_resumed_exactly() {
    let mut first = cue(with_critic(3, 2));
    for _ in 0..2 {
        first.play();
        first.learn();
    }
    let mut second = cue(with_critic(3, 2));
    for (param, other) in second.policy.params().iter().zip(first.policy.params()) {
        copy_into(&param.tensor, &other.tensor, false).expect("copy");
    }
    let saved = first.learner.rehearsal_tensors().expect("no device fails");
    let saved: Vec<(String, Tensor)> = first.learner.state_tensors().into_iter().chain(saved).collect();
    second
        .learner
        .restore(&first.learner.state(), &saved)
        .expect("the same learner");
    second.round = first.round;

    for _ in 0..2 {
        let [one, two] = [&mut first, &mut second].map(|training| {
            training.play();
            LearnerUpdate {
                finalize_ms: Num(0.0),
                update_ms: Num(0.0),
                learner_step_us_p50: None,
                ..training.learn()
            }
        });
        assert_eq!((one.skip_reason, one.critic_steps), (UpdateSkip::None, Some(6)));
        assert_eq!(one, two);
    }
    assert_eq!(params(&first, true), params(&second, true));
}

/// A critic's gradient that is not finite moves neither parameters nor moments.
#[test]
fn a_blocked_or_spoilt_pass_takes_no_step() {
    let mut training = cue(with_critic(2, 1));
    training.play();
    let config = training.learner.config().clone();
    let rollout = CriticRollout::gather(&training.buffer, 1.0, &config).expect("memory");
    let mut optimizer = PolicyOptimizer::new(&training.policy, &config, Implementation::Plain).expect("sound");
    let before = params(&training, true);
    let run = |optimizer: &mut PolicyOptimizer, blocked: f64, rewards: f64| {
        let passes = CriticPasses {
            config: &config,
            rollouts: vec![&rollout],
            units: ValueUnits {
                mean: 0.0,
                deviation: rewards,
            },
            reward_scale: 1.0,
            lr: 1e-3,
            reads: &HostSyncCounter::default(),
        };
        let blocked = Tensor::full([0i64; 0], blocked, (Kind::Float, Device::Cpu));
        let mut rng = crate::random::RunRng::from_seed(1);
        passes
            .run(&training.policy, optimizer, &blocked, &mut rng)
            .expect("no device fails")
            .steps
    };

    assert_eq!(run(&mut optimizer, 1.0, 1.0), 0);
    assert_eq!(run(&mut optimizer, 0.0, 0.0), 0, "targets are not finite");
    assert_eq!(params(&training, true), before);
    assert_eq!(run(&mut optimizer, 0.0, 1.0), 2);
    assert_ne!(params(&training, true), before);
}

#[test]
fn values_alone_are_those_of_an_evaluation() {
    let mut training = cue(with_critic(1, 1));
    training.play();
    let config = training.learner.config().clone();
    let rollout = CriticRollout::gather(&training.buffer, 1.0, &config).expect("memory");
    let sequence: ValueSequence = rollout.input();

    let values = read(&training.policy.evaluate_values(&sequence).expect("no device fails"));

    let units = training.learner.value_units();
    let RecurrentState(initial) = sequence.initial;
    assert_eq!(initial.len(), 2);
    for (step, record) in training.buffer.rows[0].steps.iter().enumerate() {
        assert!((units.raw(values[step]) - f64::from(record.value)).abs() < 1e-5);
    }
}
