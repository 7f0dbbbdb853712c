//! The loss of a policy that computes in float16 is scaled.

use tch::Kind;

use super::faulty::{params, spoil_gradient};
use super::policy::SmallPolicy;
use super::tasks::CueTask;
use super::training::{Training, small_config};
use super::{UPDATES, cue, read};
use crate::actions::PolicyError;
use crate::learner::algorithm::*;
use crate::nn::{Implementation, Linear};
use crate::policy::{Evaluation, PolicyParam, SequenceInput, TrainablePolicy};
use crate::telemetry::{LearnerUpdate, Num, UpdateSkip};
use crate::torch::HostSyncCounter;

/// A policy that says it computes in float16: its loss is scaled.
struct InHalf<'a>(&'a mut SmallPolicy, &'a dyn Fn(&mut Evaluation));

impl TrainablePolicy for InHalf<'_> {
    fn params(&self) -> Vec<PolicyParam> {
        self.0.params()
    }

    fn value_output(&self) -> Linear {
        self.0.value_output()
    }

    fn precision(&self) -> Option<Kind> {
        Some(Kind::Half)
    }

    fn evaluate(&self, input: &SequenceInput) -> Result<Evaluation, PolicyError> {
        let mut evaluation = self.0.evaluate(input)?;
        (self.1)(&mut evaluation);
        Ok(evaluation)
    }

    fn set_floor_scale(&mut self, scale: f64) {
        self.0.set_floor_scale(scale);
    }
}

fn scaled_learner(training: &mut Training<CueTask>) -> Learner {
    let horizon = Horizon {
        total_updates: UPDATES,
        envs: 8,
    };
    let policy = InHalf(&mut training.policy, &|_| {});
    Learner::new(small_config(), horizon, 7, &policy, Implementation::Fused).expect("a sound policy")
}

fn learn_scaled(training: &mut Training<CueTask>, spoil: &dyn Fn(&mut Evaluation)) -> LearnerUpdate {
    training.play();
    let mut policy = InHalf(&mut training.policy, spoil);
    let reads = HostSyncCounter::default();
    let update = training
        .learner
        .learn(&mut training.buffer, &mut policy, training.round, &reads);
    training.buffer.clear().expect("complete");
    training.round += 1;
    update.expect("finished")
}

fn scale_of(learner: &Learner) -> Vec<f64> {
    let tensors = learner.state_tensors().into_iter();
    let scaler = tensors.filter(|(name, _)| name.starts_with("loss_scaler."));
    scaler.flat_map(|(_, tensor)| read(&tensor)).collect()
}

#[test]
fn a_scaled_loss_teaches_the_same() {
    let [mut plain, mut scaled] = [cue(small_config()), cue(small_config())];
    scaled.learner = scaled_learner(&mut scaled);
    plain.play();
    plain.learn();

    let update = learn_scaled(&mut scaled, &|_| {});

    assert_eq!(update.loss_scale, Some(Num(65536.0)));
    let differences = params(&plain.policy).into_iter().zip(params(&scaled.policy));
    let largest = differences.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(largest < 1e-5, "{largest}");
}

/// Not the policy's fault: the scale falls until gradients fit.
#[test]
fn an_overflow_of_scaled_gradients_is_no_failure_and_the_scale_outlasts_the_process() {
    let mut training = cue(small_config());
    training.learner = scaled_learner(&mut training);

    let update = learn_scaled(&mut training, &spoil_gradient);

    assert_eq!(
        (update.update_performed, update.skip_reason),
        (false, UpdateSkip::Overflow)
    );
    assert_eq!((update.consecutive_failures, update.nonfinite_sources.len()), (0, 0));
    assert_eq!(update.steps_taken, 0);
    // Halved by each of the four epochs.
    let scale = scale_of(&training.learner);
    assert_eq!(scale, [65536.0 / 16.0, 0.0]);

    let (state, tensors) = (training.learner.state(), training.learner.state_tensors());
    let mut resumed = scaled_learner(&mut training);
    resumed.restore(&state, &tensors).expect("it is the same learner");
    assert_eq!(scale_of(&resumed), scale);
    let mut other = cue(small_config()).learner;
    other.restore(&state, &tensors).expect("one without a scale leaves it");
}
