//! The loss of a policy that computes in float16 is scaled.

use tch::Kind;

use super::policy::SmallPolicy;
use super::tasks::CueTask;
use super::training::{Training, small_config, spoil_gradient};
use super::{UPDATES, cue, params};
use crate::learner::algorithm::*;
use crate::nn::Implementation;
use crate::policy::fixtures::values;
use crate::telemetry::{Num, UpdateSkip};

fn learner(policy: &SmallPolicy) -> Learner {
    let horizon = Horizon {
        total_updates: UPDATES,
        envs: 8,
    };
    Learner::new(small_config(), horizon, 7, policy, Implementation::Fused).expect("a sound policy")
}

/// A training with a policy that says it computes in float16.
fn scaled() -> Training<CueTask> {
    let mut training = cue(small_config());
    training.policy.precision = Some(Kind::Half);
    training.learner = learner(&training.policy);
    training
}

fn scale_of(learner: &Learner) -> Vec<f64> {
    let tensors = learner.state_tensors().into_iter();
    let scaler = tensors.filter(|(name, _)| name.starts_with("loss_scaler."));
    scaler.flat_map(|(_, tensor)| values(&tensor)).collect()
}

#[test]
fn a_scaled_loss_teaches_the_same() {
    let [mut plain, mut scaled] = [cue(small_config()), scaled()];

    let [_, update] = [&mut plain, &mut scaled].map(|training| training.learn_with(|_, _| ()));

    assert_eq!(update.loss_scale, Some(Num(65536.0)));
    let differences = params(&plain.policy).into_iter().zip(params(&scaled.policy));
    let largest = differences.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(largest < 1e-5, "{largest}");
}

/// Not the policy's fault: the scale falls until gradients fit.
#[test]
fn an_overflow_of_scaled_gradients_isnt_a_failure_and_the_scale_outlasts_the_process() {
    let mut training = scaled();

    let update = training.learn_with(|_, evaluation| spoil_gradient(evaluation));

    assert_eq!((update.skip_reason, update.steps_taken), (UpdateSkip::Overflow, 0));
    assert_eq!((update.consecutive_failures, update.nonfinite_sources.len()), (0, 0));
    assert!(!update.update_performed);
    // Halved by each of the four epochs.
    let scale = scale_of(&training.learner);
    assert_eq!(scale, [65536.0 / 16.0, 0.0]);

    let (state, tensors) = (training.learner.state(), training.learner.state_tensors());
    let mut resumed = learner(&training.policy);
    resumed.restore(&state, &tensors).expect("it is the same learner");
    assert_eq!(scale_of(&resumed), scale);
    let mut other = cue(small_config()).learner;
    other.restore(&state, &tensors).expect("one without a scale leaves it");
}
