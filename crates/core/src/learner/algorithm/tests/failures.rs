//! Updates that go wrong: what is passed over, stopped, undone and counted.

use tch::{Kind, Tensor};

use super::faulty::{learn_with, params, spoil_gradient};
use super::training::small_config;
use super::{cue, read};
use crate::policy::{Evaluation, TrainablePolicy};
use crate::scenario::LearnerConfig;
use crate::telemetry::{FinitenessGate, UpdateSkip};

#[test]
fn another_floor_in_the_update_than_in_the_rollout_is_a_mismatch() {
    let mut training = cue(small_config());
    for param in training
        .policy
        .params()
        .iter()
        .filter(|param| param.name == "head.op.0.bias")
    {
        // Far from uniform, so that a floor matters.
        let bias = Tensor::from_slice(&[0.0f32, 0.0, 0.0, 6.0, 0.0, 0.0]);
        crate::torch::copy_into(&param.tensor, &bias, false).expect("copy");
    }
    training.play();
    training.policy.floor = 0.2;
    let before = params(&training.policy);
    let record = training.learn();

    assert_eq!(record.skip_reason, UpdateSkip::Mismatch);
    assert_eq!(
        (record.steps_taken, record.updates, record.consecutive_failures),
        (0, 0, 1)
    );
    let is_value = |index: usize| index + 33 >= before.len();
    for (index, (old, new)) in before.iter().zip(params(&training.policy)).enumerate() {
        assert!(
            is_value(index) || *old == new,
            "only the value head's units may have moved"
        );
    }
}

/// One bad minibatch is passed over, the others step.
#[test]
fn a_minibatch_with_a_gradient_that_is_not_finite_takes_no_step() {
    let config = LearnerConfig {
        num_minibatches: 2,
        epochs: 1,
        ..small_config()
    };
    let mut training = cue(config);
    let record = learn_with(&mut training, &|index, evaluation| {
        if index == 0 {
            spoil_gradient(evaluation);
        }
    });

    assert!(record.update_performed);
    assert_eq!((record.steps_taken, record.nonfinite_sources.len()), (1, 1));
    let skip = &record.nonfinite_sources[0];
    assert_eq!(
        (skip.epoch, skip.minibatch, skip.gate),
        (Some(0), Some(0), FinitenessGate::G3)
    );
    assert!(params(&training.policy).iter().all(|value| value.is_finite()));
}

#[test]
fn outputs_that_are_not_finite_are_named() {
    let mut training = cue(small_config());
    let record = learn_with(&mut training, &|_, evaluation| {
        evaluation.value = &evaluation.value * f64::NAN;
    });

    assert_eq!(record.skip_reason, UpdateSkip::Nonfinite);
    assert_eq!(record.nonfinite_sources[0].gate, FinitenessGate::G1);
    assert_eq!(record.nonfinite_sources[0].sources, ["value"]);
}

/// Two failures and a success start over, three in a row are too many.
#[test]
fn failures_in_a_row_are_counted_and_a_success_ends_the_row() {
    let mut training = cue(small_config());
    let bad = |_: usize, evaluation: &mut Evaluation| spoil_gradient(evaluation);
    for failures in 1..=2 {
        let record = learn_with(&mut training, &bad);
        assert_eq!(
            (record.update_performed, record.consecutive_failures),
            (false, failures)
        );
    }
    let good = learn_with(&mut training, &|_, _| {});
    assert_eq!(
        (good.update_performed, good.updates, good.consecutive_failures),
        (true, 1, 0)
    );
    assert!(!training.learner.has_diverged());
    for _ in 0..3 {
        learn_with(&mut training, &bad);
    }
    assert!(training.learner.has_diverged());
    assert_eq!(training.learner.counters().updates, 1);
}

/// A stop before the first step is no failure, a later one keeps the steps before it.
#[test]
fn divergence_stops_an_update_without_undoing_it() {
    let mut training = cue(small_config());
    let nudge = |evaluation: &mut Evaluation| {
        // Chosen ops only: the padding and single choices stay at 0.
        let is_choice = evaluation.log_probs.lt(-1e-3).to_kind(Kind::Float);
        evaluation.log_probs = &evaluation.log_probs + is_choice * 0.9;
    };
    let stops_from = |first: usize| {
        move |index: usize, evaluation: &mut Evaluation| {
            if index >= first {
                nudge(evaluation);
            }
        }
    };
    let later = learn_with(&mut training, &stops_from(2));
    assert!(later.update_performed);
    assert_eq!((later.steps_taken, later.early_stop_epoch), (2, Some(2)));
    assert!(
        later.measured.approx_kl.is_some_and(|kl| kl.0 < 0.045),
        "of the steps taken"
    );

    // At the first minibatch the same difference is a mismatch as well, which weighs more.
    let first = learn_with(&mut training, &stops_from(0));
    assert_eq!(first.skip_reason, UpdateSkip::Mismatch);
}

#[test]
fn a_stop_before_the_first_step_is_no_failure() {
    let config = LearnerConfig {
        target_kl: Some(1e-12),
        ..small_config()
    };
    let mut training = cue(config);
    let record = learn_with(&mut training, &|_, evaluation| {
        evaluation.log_probs = &evaluation.log_probs + evaluation.log_probs.lt(-1e-3).to_kind(Kind::Float) * 0.01;
    });

    assert_eq!(record.skip_reason, UpdateSkip::Kl);
    assert_eq!((record.updates, record.consecutive_failures), (0, 0));
}

/// Gate G4: what spoils parameters is undone.
#[test]
fn parameters_that_are_not_finite_are_restored() {
    let mut training = cue(LearnerConfig {
        num_minibatches: 1,
        epochs: 1,
        max_grad_norm: None,
        ..small_config()
    });
    training.learner.config.lr = f64::MAX;
    // Units that stay as they are: the value head is not rewritten for new ones.
    (
        training.learner.values.moments.count,
        training.learner.rewards.moments.count,
    ) = (1 << 60, 1 << 60);
    training.learner.config.value_norm.momentum = 1.0;
    let before = params(&training.policy);

    let record = learn_with(&mut training, &|_, _| {});

    assert_eq!(record.skip_reason, UpdateSkip::Nonfinite);
    assert_eq!(
        record.nonfinite_sources.last().map(|skip| skip.gate),
        Some(FinitenessGate::G4)
    );
    assert_eq!(params(&training.policy), before);
    let moments = training.learner.state_tensors();
    assert!(
        moments
            .iter()
            .all(|(_, tensor)| read(tensor).iter().all(|&value| value == 0.0))
    );
}
