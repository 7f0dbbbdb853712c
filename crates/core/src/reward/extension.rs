//! Terms that an application adds to the rewards of every mode.

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{RewardError, RewardInputs};
use crate::schema::{Registry, registry};

/// What a step is paid beside the scenario's reward; a pure function of what the scenario's reward sees.
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
    /// A term that is no number.
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
