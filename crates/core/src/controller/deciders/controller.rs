//! The trait of controllers, and the learner's demands on one that learns.

use std::path::Path;

use tch::Tensor;

use crate::actions::{Decision, MaskSet, PolicyError};
use crate::controller::saved::{SavedFolder, check_controller, save_controller};
use crate::controller::view::{DecisionView, EnvRow, ObservationNormaliser, ObservationSchema};
use crate::health::Failure;
use crate::policy::{ActorCritic, DecideMode, RecurrentState, TrainablePolicy};
use crate::unfinished::UnfinishedRound;

/// Decides for all envs of a run.
///
/// A decision must lie within its env's masks. It may depend on nothing but the view, the masks, the controller's own
/// state and its own random streams, so that runs with one seed are equal for any order of envs and threads.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use std::sync::Arc;
///
/// use simic_engine::prelude::{BuildContext, Controller, ControllerRegistry, Decision, DecisionView, LifecycleCommand, LifecycleOp, MaskSet, PolicyError};
///
/// /// Advances every seed as soon as it may, and never germinates one.
/// struct Eager;
///
/// impl Controller for Eager {
///     fn name(&self) -> &str {
///         "eager"
///     }
///
///     fn decide(
///         &mut self,
///         _view: &DecisionView,
///         masks: &[MaskSet],
///     ) -> Result<Vec<Decision>, PolicyError> {
///         let decide = |masks: &MaskSet| match masks.slots_for(LifecycleOp::Advance).lowest() {
///             Some(slot) => Decision::new(LifecycleCommand::Advance { slot }, masks, "may advance"),
///             None => Decision::new(LifecycleCommand::Wait, masks, "nothing to advance"),
///         };
///         Ok(masks.iter().map(decide).collect())
///     }
/// }
///
/// fn build(_context: &BuildContext) -> Result<Box<dyn Controller>, PolicyError> {
///     Ok(Box::new(Eager))
/// }
///
/// let mut registry = ControllerRegistry::default();
/// registry.register("eager", "advances every seed that may advance", Arc::new(build));
/// assert!(registry.iter().any(|(name, _)| name == "eager"));
/// ```
pub trait Controller: Send {
    /// The name under which it is registered.
    fn name(&self) -> &str;

    /// Identity of its behaviour beyond its name, such as the hash of a schedule.
    fn fingerprint(&self) -> Option<&str> {
        None
    }

    /// Returns whether it needs observations and blueprint indices of every env in addition to reports, signals and masks,
    /// which are always there. The engine asks once, after it has built the controller.
    fn needs_observation(&self) -> bool {
        false
    }

    /// Starts an episode of the envs and forgets the state of the last one.
    fn begin_episode(&mut self, _rows: &[EnvRow]) {}

    /// Narrows the masks, one set per env of the view. Bits can only be cleared, and the engine checks the masks afterwards.
    ///
    /// # Errors
    /// An error of the controller, or a restriction that leaves nothing.
    fn restrict(&self, _view: &DecisionView, _masks: &mut [MaskSet]) -> Result<(), PolicyError> {
        Ok(())
    }

    /// One decision per env of the view, in the same order.
    ///
    /// # Errors
    /// Any reason that keeps the controller from deciding. The run stops.
    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError>;

    /// The policy that a learner may improve. `None` for a controller that doesn't learn.
    fn learned(&mut self) -> Option<&mut dyn LearningPolicy> {
        None
    }

    /// Saves its memory of the current episodes, for a checkpoint inside a round. Called between two steps. A
    /// controller that saves nothing resumes as after [`begin_episode`](Self::begin_episode).
    ///
    /// # Errors
    /// An error of the controller.
    fn save_episodes(&mut self, _round: &mut UnfinishedRound) -> Result<(), Failure> {
        Ok(())
    }

    /// Restores the state that [`save_episodes`](Self::save_episodes) saved. Called after the episodes have begun.
    ///
    /// # Errors
    /// If the saved state doesn't fit.
    fn restore_episodes(&mut self, _round: &UnfinishedRound) -> Result<(), Failure> {
        Ok(())
    }

    /// Writes the state that another run needs to continue this controller with new episodes into `folder`. The folder appears
    /// complete or not at all.
    ///
    /// # Errors
    /// If the folder cannot be written.
    fn save(&self, folder: &Path) -> Result<(), PolicyError> {
        save_controller(folder, self.name(), self.fingerprint())
    }

    /// Restores the saved state of a controller.
    ///
    /// # Errors
    /// If the saved state can't be understood or doesn't fit. Nothing has changed then.
    fn load(&mut self, saved: &SavedFolder) -> Result<(), PolicyError> {
        check_controller(saved, self.name(), self.fingerprint())
    }
}

/// A policy that decides for the envs of a run and that a learner improves between its rollouts.
pub trait LearningPolicy: TrainablePolicy {
    /// The network of the policy.
    fn net(&self) -> &dyn ActorCritic;

    /// The layout of the observations that it decides on.
    fn schema(&self) -> &ObservationSchema;

    /// The normaliser that brings observations to the scale that the network sees.
    fn normaliser(&self) -> &ObservationNormaliser;

    /// The normaliser, into which a rollout's observations are merged after an update.
    fn normaliser_mut(&mut self) -> &mut ObservationNormaliser;

    /// The live recurrent state from which the next step starts. The row is the env's index in the run.
    ///
    /// # Errors
    /// A device error.
    fn recurrent(&mut self) -> Result<&RecurrentState, PolicyError>;

    /// Zeroes the recurrent rows of envs (indices in the run) before they act again: after a rollback or a bootstrap.
    fn reset_rows(&mut self, rows: &[usize]);

    /// Estimated return of each env of the view from here on, in normalised units, without taking a step. A
    /// truncated episode is credited with it.
    ///
    /// # Errors
    /// A value that isn't finite, or a device error.
    fn value(&mut self, view: &DecisionView) -> Result<Vec<f32>, PolicyError>;

    /// Draws actions from now on, or takes the likeliest ones.
    fn set_mode(&mut self, mode: DecideMode);

    /// Updates that the weights have seen.
    fn updates(&self) -> u64;

    /// Updates that the weights have seen: part of a saved policy.
    fn set_updates(&mut self, updates: u64);

    /// Tensors that hold the weights before the newest update, by name: any shape, f32, on the policy's device. If the weights in force ever put out something
    /// that is not finite, they are put back from these and the decision is tried again, once in a run.
    fn set_last_good(&mut self, weights: Vec<(String, Tensor)>);
}
