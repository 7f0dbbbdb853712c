//! A policy with a fault, and what a learner makes of it.

use super::policy::SmallPolicy;
use super::read;
use super::tasks::CueTask;
use super::training::Training;
use crate::actions::PolicyError;
use crate::nn::Linear;
use crate::policy::{Evaluation, PolicyParam, SequenceInput, TrainablePolicy};
use crate::telemetry::LearnerUpdate;
use crate::torch::HostSyncCounter;

pub(super) fn params(policy: &dyn TrainablePolicy) -> Vec<f64> {
    policy.params().iter().flat_map(|param| read(&param.tensor)).collect()
}

/// A policy with a fault: `spoil` sees every evaluation.
pub(super) struct Faulty<'a> {
    policy: &'a mut SmallPolicy,
    spoil: &'a dyn Fn(usize, &mut Evaluation),
    evaluations: std::cell::Cell<usize>,
    /// The last value it was given.
    floor_scale: Option<f64>,
}

impl TrainablePolicy for Faulty<'_> {
    fn params(&self) -> Vec<PolicyParam> {
        self.policy.params()
    }

    fn value_output(&self) -> Linear {
        self.policy.value_output()
    }

    fn evaluate(&self, input: &SequenceInput) -> Result<Evaluation, PolicyError> {
        let mut evaluation = self.policy.evaluate(input)?;
        (self.spoil)(self.evaluations.replace(self.evaluations.get() + 1), &mut evaluation);
        Ok(evaluation)
    }

    fn set_floor_scale(&mut self, scale: f64) {
        self.floor_scale = Some(scale);
        self.policy.set_floor_scale(scale);
    }
}

/// Plays a rollout and learns from it with a fault.
pub(super) fn learn_with(training: &mut Training<CueTask>, spoil: &dyn Fn(usize, &mut Evaluation)) -> LearnerUpdate {
    learn_and_listen(training, spoil).0
}

/// The same; also returns the factor by which the policy scales its floors from now on.
pub(super) fn learn_and_listen(
    training: &mut Training<CueTask>,
    spoil: &dyn Fn(usize, &mut Evaluation),
) -> (LearnerUpdate, Option<f64>) {
    training.play();
    let mut policy = Faulty {
        policy: &mut training.policy,
        spoil,
        evaluations: std::cell::Cell::new(0),
        floor_scale: None,
    };
    let reads = HostSyncCounter::default();
    let record = training
        .learner
        .learn(&mut training.buffer, &mut policy, training.round, &reads);
    assert!(reads.count() <= 1, "one read an update");
    let floor_scale = policy.floor_scale;
    training.buffer.clear().expect("complete");
    training.round += 1;
    (record.expect("finished"), floor_scale)
}

/// Gradients become NaN, outputs and loss do not: the root of 0 has an infinite slope.
pub(super) fn spoil_gradient(evaluation: &mut Evaluation) {
    let nothing = (&evaluation.value - evaluation.value.detach()).sqrt() * 0.0;
    evaluation.value = &evaluation.value + nothing;
}
