//! Controllers: who decides, once per env and step, what happens to a slot (spec 03).
//!
//! Measured steps become [`TrainingSignals`], slot reports become a [`MaskSet`], and a [`Controller`] answers with one
//! [`Decision`] per env. All controllers, learned or not, run in the same loop; plugins add theirs by name to the
//! [`ControllerRegistry`].

mod action;
mod action_space;
mod choices;
mod error;
mod events;
mod execute;
#[cfg(test)]
pub(crate) mod fixtures;
mod heuristic;
#[cfg(test)]
mod mask_properties;
mod masks;
mod moments;
mod observation;
mod policy;
mod random;
mod registry;
mod replay;
mod saved;
mod schedule;
mod signals;
mod systems;
mod trainable;
mod wait;

pub use action::*;
pub use action_space::*;
pub use choices::*;
pub use error::*;
pub use events::DecidedEnv;
pub use heuristic::*;
pub use masks::*;
pub use moments::*;
pub use observation::*;
pub use policy::*;
pub use random::*;
pub use registry::*;
pub use replay::*;
pub use saved::*;
pub use schedule::*;
pub use signals::*;
pub use systems::*;
pub use trainable::*;
pub use wait::*;

use std::borrow::Cow;
use std::path::Path;

use crate::growth::LifecycleCommand;
use crate::seed::SeedReport;
use crate::torch::HostSyncCounter;

/// An env of a controller's policy group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvRow {
    /// Index in the run.
    pub env: usize,
    /// Index in the policy group: what random streams are named by.
    pub index_in_group: usize,
    pub episode: u64,
}

/// What is known of one env when its command is due.
#[derive(Clone, Copy, Debug)]
pub struct EnvView<'a> {
    pub row: EnvRow,
    /// In slot order; `None` is an empty slot.
    pub reports: &'a [Option<SeedReport>],
    pub signals: &'a TrainingSignals,
    /// `None` unless the controller asks for it by [`Controller::needs`].
    pub observation: Option<&'a Observation>,
}

/// All envs of a policy group that decide in this step. Masks come beside it, one set per env, in the same order.
#[derive(Clone, Copy, Debug)]
pub struct DecisionView<'a> {
    /// 0-based.
    pub round: u32,
    /// 1-based.
    pub step: u32,
    pub envs: &'a [EnvView<'a>],
    /// Counts what is read from a device.
    pub reads: &'a HostSyncCounter,
}

impl DecisionView<'_> {
    /// Where an error of the env in `row` arises.
    pub fn point(&self, row: EnvRow) -> DecisionPoint {
        DecisionPoint {
            env: row.env,
            episode: row.episode,
            step: self.step,
        }
    }
}

/// What a controller orders for one env, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub command: LifecycleCommand,
    /// The command as head indices, placeholders filled in.
    pub indices: HeadIndices,
    /// There was nothing to choose.
    pub forced: bool,
    /// A few words for telemetry.
    pub reason: Cow<'static, str>,
    /// Probabilities and value of a learned controller; `None` for any other.
    pub sample: Option<Sample>,
}

/// What a controller wants to see beyond reports, signals and masks, which are always there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Observations and blueprint indices of every env.
    pub observation: bool,
}

impl Decision {
    pub fn new(command: LifecycleCommand, masks: &MaskSet, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            command,
            indices: indices_of(&command, masks.lowest_slot()),
            forced: masks.is_forced(),
            reason: reason.into(),
            sample: None,
        }
    }
}

/// Decides for all envs of one policy group.
///
/// A decision must lie within its env's masks. It may depend on nothing but the view, the masks, the controller's own
/// state and its own random streams, so that runs with one seed are equal whatever the order of envs and threads.
///
/// ```
/// use simic_engine::controller::{
///     BuildContext, Controller, ControllerRegistry, Decision, DecisionView, MaskSet, PolicyError,
/// };
/// use simic_engine::growth::{LifecycleCommand, LifecycleOp};
///
/// /// Moves every seed on as soon as it may, and never starts one.
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
/// registry.register("eager", "advances whatever it can", build)?;
/// assert!(registry.names().any(|name| name == "eager"));
/// # Ok::<(), PolicyError>(())
/// ```
pub trait Controller: Send {
    /// The name it is registered by.
    fn name(&self) -> &str;

    /// Identity of what it will do, beyond its name: the hash of a schedule.
    fn fingerprint(&self) -> Option<&str> {
        None
    }

    /// What it wants to see; asked once, when it has been built.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The envs start an episode: forget what belongs to the last one.
    fn begin_episode(&mut self, _rows: &[EnvRow]) {}

    /// Narrows the masks, one set per env of the view; bits can only be cleared, and the masks are checked afterwards.
    ///
    /// # Errors
    /// The controller's own, or a restriction that leaves nothing.
    fn restrict(&self, _view: &DecisionView, _masks: &mut [MaskSet]) -> Result<(), PolicyError> {
        Ok(())
    }

    /// One decision per env of the view, in the same order.
    ///
    /// # Errors
    /// Whatever keeps the controller from deciding; the run stops.
    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError>;

    /// Estimated return of each env of the view from here on, in normalised units, without taking a step: what a
    /// truncated episode is credited with. `None` for a controller without a value.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    fn value(&mut self, _view: &DecisionView) -> Result<Option<Vec<f32>>, PolicyError> {
        Ok(None)
    }

    /// The envs' episodes are over.
    fn end_episode(&mut self, _rows: &[EnvRow]) {}

    /// The policy that a learner may improve; `None` for a controller that does not learn.
    fn learned(&mut self) -> Option<&mut ActorCriticController> {
        None
    }

    /// Writes what another run needs to go on as this controller into `folder`, which appears whole or not at all.
    ///
    /// # Errors
    /// The folder cannot be written.
    fn save(&self, folder: &Path) -> Result<(), PolicyError> {
        save_controller(folder, self.name(), self.fingerprint(), &())
    }

    /// Goes on as the controller that was saved.
    ///
    /// # Errors
    /// The folder cannot be read, or what it holds does not fit; nothing has changed then.
    fn load(&mut self, folder: &Path) -> Result<(), PolicyError> {
        load_controller(folder, self.name(), self.fingerprint())
    }
}
