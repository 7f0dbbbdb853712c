//! Terms that an application adds to every reward, whatever its mode.

use std::collections::BTreeMap;

use bevy_ecs::prelude::Resource;

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{RewardError, RewardInputs};

/// What a step is paid beside the scenario's reward; a pure function of what the scenario's reward sees.
pub type RewardTerm = fn(&RewardInputs) -> f64;

/// The terms that plugins add, by name. Together they are the [`Term::Extension`] of a step.
///
/// ```
/// # use bevy_app::App;
/// use simic_engine::prelude::*;
/// use simic_engine::reward::RewardTerms;
///
/// fn register(app: &mut App) -> Result<(), ExtensionError> {
///     let mut terms = app.world_mut().resource_mut::<RewardTerms>();
///     Ok(terms.register("accuracy", |step| step.accuracy / 100.0)?)
/// }
/// ```
#[derive(Resource, Clone, Debug, Default)]
pub struct RewardTerms(BTreeMap<String, RewardTerm>);

impl RewardTerms {
    /// Adds a term.
    ///
    /// # Errors
    /// The name is taken.
    pub fn register(&mut self, name: impl Into<String>, term: RewardTerm) -> Result<(), RewardError> {
        let name = name.into();
        if self.0.contains_key(&name) {
            return Err(RewardError::DuplicateTerm(name));
        }
        self.0.insert(name, term);
        Ok(())
    }

    /// Adds all of them to a step's reward.
    ///
    /// # Errors
    /// A term that is no number.
    pub(super) fn pay(&self, inputs: &RewardInputs, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        for (name, term) in &self.0 {
            let amount = term(inputs);
            if !amount.is_finite() {
                let name = name.clone();
                return Err(RewardError::NonFiniteTerm { name, amount });
            }
            out.pay(Term::Extension, amount);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
