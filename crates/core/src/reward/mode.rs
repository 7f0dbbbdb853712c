//! The trait of reward modes, the built-in modes by their configuration, and those that applications add; the pure function
//! that `compute_reward` calls, from a mode to a step's number; and terms that applications add to the rewards of every mode.

use std::sync::Arc;

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{RewardError, RewardInputs};
use super::potential::shaping;
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
/// /// Pays for accuracies that were never reached before.
/// struct Record;
///
/// impl RewardMode for Record {
///     fn pay(&self, step: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError> {
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
/// `attribution`. A mode states its needs in its [`profile`](Self::profile), and a scenario that does not measure them
/// is refused.
pub trait RewardMode: Send + Sync {
    /// Pays one env's step, without the potential.
    ///
    /// # Errors
    /// A measurement that the mode needs and that is missing.
    fn pay(&self, step: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError>;

    /// The mode's demands on the scenario; none by default.
    fn profile(&self) -> RewardProfile {
        RewardProfile::default()
    }

    /// The weight of the potential over stages, if the mode shapes by it.
    fn potential_weight(&self) -> Option<f64> {
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

impl dyn RewardMode {
    /// The reward of one env's step, part by part; `state` moves on to the next step.
    ///
    /// ```
    /// # extern crate simic_core as simic_engine;
    /// use simic_engine::extend::RewardConfig;
    /// use simic_engine::prelude::{RewardInputs, RewardModes, RewardState, Term};
    ///
    /// let reward = RewardModes::default().of(&RewardConfig::default())?;
    /// let mut state = RewardState::default();
    ///
    /// let nothing_happened = RewardInputs {
    ///     step: 1,
    ///     max_steps: 60,
    ///     gamma: 0.995,
    ///     accuracy: 12.5,
    ///     committed_accuracy: Some(12.5),
    ///     host_params: 1000,
    ///     ..RewardInputs::default()
    /// };
    /// let breakdown = reward.compute(&nothing_happened, &mut state)?;
    /// assert_eq!(breakdown.total(), 0.0);
    /// assert_eq!(breakdown.get(Term::LinearRent), 0.0);
    /// # Ok::<(), simic_engine::prelude::RewardError>(())
    /// ```
    ///
    /// # Errors
    /// An input or a result that isn't a finite number, a missing measurement, or a memory that cannot be read.
    pub fn compute(&self, inputs: &RewardInputs, state: &mut RewardState) -> Result<RewardBreakdown, RewardError> {
        inputs.check()?;
        let mut out = RewardBreakdown::default();
        self.pay(inputs, state, &mut out)?;
        if let Some(weight) = self.potential_weight() {
            out.pay(Term::Pbrs, weight * shaping(inputs));
        }
        match out.total() {
            total if total.is_finite() => Ok(out),
            total => Err(RewardError::NonFinite {
                total,
                terms: out.iter().collect(),
            }),
        }
    }
}

/// A step's payment in addition to the scenario's reward; a pure function of the same inputs.
pub type RewardTerm = dyn Fn(&RewardInputs) -> f64 + Send + Sync;

registry! {
    /// The terms that plugins add, by name. Together they are the [`Term::Extension`] of a step.
    ///
    /// ```
    /// # extern crate simic_core as simic_engine;
    /// use std::sync::Arc;
    ///
    /// use simic_engine::prelude::*;
    ///
    /// fn register(app: &mut App) {
    ///     let mut terms = app.world_mut().resource_mut::<RewardTerms>();
    ///     terms.register("accuracy", "the accuracy itself", Arc::new(|step| step.accuracy / 100.0));
    /// }
    /// ```
    pub struct RewardTerms(RewardTerm);
}

impl Default for RewardTerms {
    fn default() -> Self {
        Self(Registry::new("reward term"))
    }
}

impl RewardTerms {
    /// Adds all of them to a step's reward.
    ///
    /// # Errors
    /// A term that isn't a finite number.
    pub(super) fn pay(&self, inputs: &RewardInputs, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        for (name, term) in self.parts() {
            let amount = term(inputs);
            if !amount.is_finite() {
                let name = name.to_owned();
                return Err(RewardError::NonFiniteTerm { name, amount });
            }
            out.pay(Term::Extension, amount);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
