//! From a scenario's `reward` section to the number of one step: the pure function behind `compute_reward`.

use super::breakdown::{RewardBreakdown, Term};
use super::inputs::{RewardError, RewardInputs};
use super::potential::Potential;
use super::state::RewardState;
use super::{modes, shaped};
use crate::growth::LifecycleOp;
use crate::scenario::{ContributionMode, RewardConfig};

/// A reward section with the one discount of its policy group.
///
/// ```
/// use simic_engine::reward::{RewardFunction, RewardInputs, RewardState, Term};
/// use simic_engine::scenario::RewardConfig;
///
/// let config = RewardConfig::default();
/// let reward = RewardFunction::resolve(&config, 0.995);
/// let mut state = RewardState::default();
///
/// let nothing_happened = RewardInputs {
///     step: 1,
///     is_final: false,
///     status: Default::default(),
///     op: simic_engine::growth::LifecycleOp::Wait,
///     slot: None,
///     rejected: None,
///     accuracy: 12.5,
///     loss: 2.2,
///     host_params: 1000,
///     slots: Default::default(),
///     interactions: Vec::new(),
///     delta_cf: None,
///     committed_accuracy: None,
///     auto_pruned: 0,
/// };
/// let breakdown = reward.compute(&nothing_happened, &mut state)?;
/// assert_eq!(breakdown.total(), 0.0);
/// assert_eq!(breakdown.get(Term::ComputeRent), 0.0);
/// # Ok::<(), simic_engine::reward::RewardError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RewardFunction<'a> {
    config: &'a RewardConfig,
    gamma: f64,
}

impl<'a> RewardFunction<'a> {
    /// `gamma` is the learner's discount: shaping is neutral only if both use the same.
    pub const fn resolve(config: &'a RewardConfig, gamma: f64) -> Self {
        Self { config, gamma }
    }

    /// The reward of one env's step, part by part; `state` moves on to the next step.
    ///
    /// # Errors
    /// An input or a result that is no number, a missing measurement, or the memory of another seed.
    pub fn compute(&self, inputs: &RewardInputs, state: &mut RewardState) -> Result<RewardBreakdown, RewardError> {
        inputs.check()?;
        state.begin_step(inputs)?;
        self.count_commit(inputs, state);
        let mut out = RewardBreakdown::default();
        match self.config {
            RewardConfig::Contribution(mode) => match mode {
                ContributionMode::Shaped(config) => shaped::pay(config, self.gamma, inputs, state, &mut out),
                ContributionMode::Simplified(config) => modes::pay_simplified(config, inputs, state, &mut out),
                ContributionMode::Basic(config) => modes::pay_basic(config, inputs, state, &mut out),
                ContributionMode::Sparse(config) => modes::pay_sparse(config, inputs, &mut out)?,
            },
            RewardConfig::Loss(config) => modes::pay_loss(config, inputs, state, &mut out)?,
        }
        self.pay_potential(inputs, state, &mut out);
        state.end_step(inputs);
        match out.total() {
            total if total.is_finite() => Ok(out),
            total => Err(RewardError::NonFinite {
                total,
                terms: out.iter().collect(),
            }),
        }
    }

    /// The mode's potential, if it shapes by one.
    fn potential(&self) -> Option<Potential> {
        let unless = |is_disabled: bool, weight, progress_bonus, gap_fraction| {
            (!is_disabled).then_some(Potential {
                weight,
                progress_bonus,
                gap_fraction,
            })
        };
        match self.config {
            RewardConfig::Contribution(ContributionMode::Shaped(c)) => unless(
                c.disable_pbrs,
                c.pbrs_weight,
                c.epoch_progress_bonus,
                c.progress_gap_fraction,
            ),
            RewardConfig::Contribution(ContributionMode::Simplified(c)) => unless(
                c.disable_pbrs,
                c.pbrs_weight,
                c.epoch_progress_bonus,
                c.progress_gap_fraction,
            ),
            RewardConfig::Contribution(ContributionMode::Basic(c)) => unless(
                c.disable_pbrs,
                c.pbrs_weight,
                c.epoch_progress_bonus,
                c.progress_gap_fraction,
            ),
            RewardConfig::Contribution(ContributionMode::Sparse(_)) => None,
            RewardConfig::Loss(c) => Some(Potential {
                weight: c.stage_potential_weight,
                ..Potential::default()
            }),
        }
    }

    fn pay_potential(&self, inputs: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) {
        let Some(potential) = self.potential() else { return };
        let (before, after) = potential.of_step(inputs);
        state.chain_potential(inputs, before, after);
        (out.context.phi, out.context.phi_next) = (Some(before), Some(after));
        out.pay(Term::Pbrs, potential.shaping(before, after, self.gamma));
    }

    /// Commits that contribute are counted at the commit, by what is known then.
    fn count_commit(&self, inputs: &RewardInputs, state: &mut RewardState) {
        let (min, max_staleness) = match self.config {
            RewardConfig::Contribution(ContributionMode::Shaped(c)) => (c.min_fossilize_contribution, c.max_staleness),
            RewardConfig::Contribution(ContributionMode::Simplified(c)) => {
                (c.min_fossilize_contribution, c.max_staleness)
            }
            RewardConfig::Contribution(ContributionMode::Basic(c)) => (c.min_fossilize_contribution, c.max_staleness),
            RewardConfig::Contribution(ContributionMode::Sparse(_)) | RewardConfig::Loss(_) => return,
        };
        let committed = inputs.acted().filter(|_| inputs.op == LifecycleOp::Fossilize);
        let points = committed.and_then(|seed| seed.fresh_contribution(max_staleness));
        state.contributing += u32::from(points.is_some_and(|points| points >= min));
    }
}
