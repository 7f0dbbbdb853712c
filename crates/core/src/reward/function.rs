//! From a mode to the number of one step: the pure function behind `compute_reward`.

use std::sync::Arc;

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{RewardError, RewardInputs};
use super::mode::RewardMode;
use super::state::RewardState;

/// A reward mode with the discount of the learner.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use simic_engine::extend::{RewardConfig, RewardFunction};
/// use simic_engine::prelude::{RewardInputs, RewardModes, RewardState, Term};
///
/// let (modes, config) = (RewardModes::default(), RewardConfig::default());
/// let reward = RewardFunction::new(modes.of(&config)?, 0.995);
/// let mut state = RewardState::default();
///
/// let nothing_happened = RewardInputs {
///     step: 1,
///     max_steps: 60,
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
#[derive(Clone)]
pub struct RewardFunction {
    mode: Arc<dyn RewardMode>,
    gamma: f64,
}

impl RewardFunction {
    /// `gamma` is the learner's discount: shaping is neutral only if both use the same.
    pub const fn new(mode: Arc<dyn RewardMode>, gamma: f64) -> Self {
        Self { mode, gamma }
    }

    /// The reward of one env's step, part by part; `state` moves on to the next step.
    ///
    /// # Errors
    /// An input or a result that is no number, a missing measurement, or a memory that cannot be read.
    pub fn compute(&self, inputs: &RewardInputs, state: &mut RewardState) -> Result<RewardBreakdown, RewardError> {
        inputs.check()?;
        let mut out = RewardBreakdown::default();
        self.mode.pay(inputs, self.gamma, state, &mut out)?;
        if let Some(potential) = self.mode.potential() {
            let (before, after) = potential.of_step(inputs);
            out.pay(Term::Pbrs, potential.shaping(before, after, self.gamma));
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
