//! What a reward mode is, the built-in ones by their configuration, and those that applications add.

use std::sync::Arc;

use super::breakdown::RewardBreakdown;
use super::inputs::{RewardError, RewardInputs};
use super::potential::Potential;
use super::state::RewardState;
use crate::scenario::{ContributionMode, KnownRewards, RewardConfig, RewardProfile};
use crate::schema::{Registry, registry};

/// A way to pay decisions: a pure function of what happened in a step and of what it remembers of the episode.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use std::sync::Arc;
///
/// use simic_engine::prelude::*;
///
/// /// What an accuracy is worth that was never reached before.
/// struct Record;
///
/// impl RewardMode for Record {
///     fn pay(
///         &self,
///         step: &RewardInputs,
///         _gamma: f64,
///         state: &mut RewardState,
///         out: &mut RewardBreakdown,
///     ) -> Result<(), RewardError> {
///         let best = state.recall::<Option<f64>>()?.unwrap_or(step.accuracy);
///         out.pay(Term::Extension, (step.accuracy - best).max(0.0));
///         state.remember(&Some(best.max(step.accuracy)))
///     }
/// }
///
/// fn register(app: &mut App) {
///     let mut modes = app.world_mut().resource_mut::<RewardModes>();
///     modes.register("record", "new best accuracies", Arc::new(Record));
/// }
/// ```
/// A scenario chooses it with `reward: contribution(record())`, or `reward: custom(name: "record")`. Which coalitions of seeds are measured is the scenario's section
/// `attribution`; what a mode cannot do without it says in its [`profile`](Self::profile), and a scenario that does not measure it
/// is refused.
pub trait RewardMode: Send + Sync {
    /// Pays one env's step, but for the potential. `gamma` is the learner's discount.
    ///
    /// # Errors
    /// What the mode needs was not measured.
    fn pay(
        &self,
        step: &RewardInputs,
        gamma: f64,
        state: &mut RewardState,
        out: &mut RewardBreakdown,
    ) -> Result<(), RewardError>;

    /// What the scenario is held to; nothing unless the mode says it.
    fn profile(&self) -> RewardProfile {
        RewardProfile::default()
    }

    /// The potential over stages that the mode shapes by.
    fn potential(&self) -> Option<Potential> {
        None
    }
}

registry! {
    /// The modes that plugins add, by name.
    pub struct RewardModes(dyn RewardMode);
}

impl Default for RewardModes {
    fn default() -> Self {
        Self(Registry::new("reward mode"))
    }
}

impl RewardModes {
    /// The mode that a scenario's section `reward` describes.
    ///
    /// # Errors
    /// No mode of that name is registered.
    pub fn of(&self, config: &RewardConfig) -> Result<Arc<dyn RewardMode>, RewardError> {
        Ok(match config {
            RewardConfig::Contribution(mode) => match mode {
                ContributionMode::Committed(config) => Arc::new(*config),
                ContributionMode::Sparse(config) => Arc::new(*config),
            },
            RewardConfig::Loss(config) => Arc::new(config.clone()),
            RewardConfig::Custom { name, settings } => self.get(name, settings)?.1,
        })
    }
}

impl KnownRewards for RewardModes {
    fn profile(&self, reward: &RewardConfig) -> RewardProfile {
        self.of(reward).map(|mode| mode.profile()).unwrap_or_default()
    }
}
