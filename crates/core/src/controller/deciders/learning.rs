//! What the learner's systems need of a policy at work in a run.

use tch::Tensor;

use crate::actions::PolicyError;
use crate::controller::view::{DecisionView, ObservationNormaliser, ObservationSchema};
use crate::policy::{ActorCritic, DecideMode, RecurrentState, TrainablePolicy};

/// A policy at work on the envs of a run, which a learner improves between its rollouts.
pub trait LearningPolicy: TrainablePolicy {
    /// The network behind it.
    fn net(&self) -> &dyn ActorCritic;

    /// The layout of the observations that it decides on.
    fn schema(&self) -> &ObservationSchema;

    /// What brings observations to the scale that the network sees.
    fn normaliser(&self) -> &ObservationNormaliser;

    /// To merge a rollout's observations after an update.
    fn normaliser_mut(&mut self) -> &mut ObservationNormaliser;

    /// The live recurrent state, row = index in the run; what the next step starts from.
    ///
    /// # Errors
    /// A device error.
    fn recurrent(&mut self) -> Result<&RecurrentState, PolicyError>;

    /// Zeroes the recurrent rows of envs (indices in the run) before they act again: after a rollback or a bootstrap.
    fn reset_rows(&mut self, rows: &[usize]);

    /// Estimated return of each env of the view from here on, in normalised units, without taking a step: what a
    /// truncated episode is credited with.
    ///
    /// # Errors
    /// A value that is not finite, or a device error.
    fn value(&mut self, view: &DecisionView) -> Result<Vec<f32>, PolicyError>;

    /// Whether actions are drawn or the likeliest are taken.
    fn set_mode(&mut self, mode: DecideMode);

    /// Updates that the weights have seen.
    fn updates(&self) -> u64;

    /// Updates that the weights have seen: part of a saved policy.
    fn set_updates(&mut self, updates: u64);

    /// Tensors that hold the weights before the newest update, by name: any shape, f32, on the policy's device. If the weights in force ever put out something
    /// that is not finite, they are put back from these and the decision is tried again, once in a run.
    fn set_last_good(&mut self, weights: Vec<(String, Tensor)>);
}
