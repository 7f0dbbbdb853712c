//! Failed updates: those passed over, stopped, undone and counted.

use tch::{Kind, Tensor};

use super::training::{small_config, spoil_gradient};
use super::{cue, params};
use crate::kernels::ForcedKernels;
use crate::learner::algorithm::optimizer::PolicyOptimizer;
use crate::nn::Implementation;
use crate::policy::fixtures::values;
use crate::policy::{Evaluation, TrainablePolicy};
use crate::telemetry::{FinitenessGate, UpdateSkip};
use crate::torch::fixtures::test_backend;

#[test]
fn another_floor_in_the_update_than_in_the_rollout_is_a_mismatch() {
    let mut training = cue(small_config());
    // Far from uniform, so that a floor matters.
    let bias = Tensor::from_slice(&[0.0f32, 0.0, 0.0, 6.0, 0.0, 0.0]);
    let mut named = training.policy.params().into_iter();
    let op = named.find(|param| param.name == "head.op.0.bias").expect("its head");
    crate::torch::copy_into(&op.tensor, &bias, false).expect("copy");
    training.play();
    training.policy.floor = 0.2;
    let before = params(&training.policy);
    let record = training.learn();

    assert_eq!(record.skip_reason, UpdateSkip::Mismatch);
    assert_eq!((record.steps_taken, record.updates), (0, 0));
    assert_eq!(record.consecutive_failures, 1);
    // Only the value head's units may have moved.
    let others = ..before.len() - 33;
    assert!(before[others] == params(&training.policy)[others]);
}

/// One bad minibatch is passed over, the others step.
#[test]
fn a_minibatch_with_a_gradient_that_is_not_finite_takes_no_step() {
    let mut config = small_config();
    (config.num_minibatches, config.epochs) = (2, 1);
    let mut training = cue(config);
    let record = training.learn_with(|index, evaluation| {
        if index == 0 {
            spoil_gradient(evaluation);
        }
    });

    assert!(record.update_performed);
    assert_eq!((record.steps_taken, record.nonfinite_sources.len()), (1, 1));
    let skip = &record.nonfinite_sources[0];
    assert_eq!((skip.epoch, skip.minibatch), (Some(0), Some(0)));
    assert_eq!(skip.gate, FinitenessGate::G3);
    assert!(params(&training.policy).iter().all(|value| value.is_finite()));
}

#[test]
fn outputs_that_are_not_finite_are_named() {
    let record = cue(small_config()).learn_with(|_, evaluation| evaluation.value = &evaluation.value * f64::NAN);

    assert_eq!(record.skip_reason, UpdateSkip::Nonfinite);
    assert_eq!(record.nonfinite_sources[0].gate, FinitenessGate::G1);
    assert_eq!(record.nonfinite_sources[0].sources, ["value"]);
}

/// Two failures and a success start over, three in a row are too many.
#[test]
fn failures_in_a_row_are_counted_and_a_success_ends_the_row() {
    let mut training = cue(small_config());
    let rows = [(true, 1), (true, 2), (false, 0), (true, 1), (true, 2), (true, 3)];
    for (is_bad, failures) in rows {
        assert!(!training.learner.has_diverged());
        let record = match is_bad {
            true => training.learn_with(|_, evaluation| spoil_gradient(evaluation)),
            false => training.learn_with(|_, _| ()),
        };
        assert_eq!(record.update_performed, !is_bad);
        assert_eq!(record.consecutive_failures, failures);
    }
    assert!(training.learner.has_diverged());
    assert_eq!(training.learner.counters().updates, 1);
}

/// Shifts the log-probabilities of chosen ops. Padding and single choices stay at 0.
fn nudge(evaluation: &mut Evaluation, by: f64) {
    let is_choice = evaluation.log_probs.lt(-1e-3).to_kind(Kind::Float);
    evaluation.log_probs = &evaluation.log_probs + is_choice * by;
}

/// A later stop keeps the steps before it.
#[test]
fn divergence_stops_an_update_without_undoing_it() {
    let mut training = cue(small_config());
    let later = training.learn_with(|index, evaluation| {
        if index >= 2 {
            nudge(evaluation, 0.9);
        }
    });
    assert!(later.update_performed);
    assert_eq!((later.steps_taken, later.early_stop_epoch), (2, Some(2)));
    // Measured over the steps taken.
    assert!(later.measured.approx_kl.is_some_and(|kl| kl.0 < 0.045));

    // At the first minibatch the same difference is a mismatch as well, which weighs more.
    let first = training.learn_with(|_, evaluation| nudge(evaluation, 0.9));
    assert_eq!(first.skip_reason, UpdateSkip::Mismatch);
}

#[test]
fn a_stop_before_the_first_step_isnt_a_failure() {
    let mut config = small_config();
    config.target_kl = Some(1e-12);
    let record = cue(config).learn_with(|_, evaluation| nudge(evaluation, 0.01));

    assert_eq!(record.skip_reason, UpdateSkip::Kl);
    assert_eq!((record.updates, record.consecutive_failures), (0, 0));
}

/// Gate G4: what spoils parameters is undone.
#[test]
fn parameters_that_are_not_finite_are_restored() {
    let mut config = small_config();
    (config.num_minibatches, config.epochs, config.max_grad_norm) = (1, 1, None);
    let mut training = cue(config);
    training.learner.config.lr = f64::MAX;
    let before = params(&training.policy);

    let record = training.learn_with(|_, _| ());

    assert_eq!(record.skip_reason, UpdateSkip::Nonfinite);
    let last = record.nonfinite_sources.last();
    assert_eq!(last.map(|skip| skip.gate), Some(FinitenessGate::G4));
    // Only the value head's units may have moved.
    let others = ..before.len() - 33;
    assert!(before[others] == params(&training.policy)[others]);
    let mut moments = training.learner.state_tensors().into_iter();
    assert!(moments.all(|(_, tensor)| values(&tensor).iter().all(|&value| value == 0.0)));
}

#[test]
fn a_minibatch_on_which_a_kernel_fails_is_computed_again_and_counted() {
    if !test_backend().uses_own_kernels() {
        return;
    }
    let mut training = cue(small_config());
    let own = PolicyOptimizer::new(&training.policy, &small_config(), Implementation::Own);
    training.learner.optimizer = own.expect("a sound policy");
    training.play();

    // The first that they compute is the norm of a gradient.
    let _failing = ForcedKernels::failing(1);
    let record = training.learn();

    assert_eq!((record.update_performed, record.kernel_fallbacks), (true, 1));
}
