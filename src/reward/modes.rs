//! The smaller modes, as sums.

use super::attribution::combine;
use super::breakdown::{RewardBreakdown, Term};
use super::costs::{effective_params, linear_rent};
use super::inputs::{RewardError, RewardInputs, finite};
use super::shaped::legitimacy;
use super::state::RewardState;
use crate::growth::{LifecycleOp, SeedStage};
use crate::scenario::{BasicReward, LossReward, SimplifiedReward, SparseReward};

/// Contribution from which a commit within a harmful coalition is fined, percentage points.
const INVALID_FROM_CONTRIBUTION: f64 = 0.1;

/// A flat cost of acting; accuracy and contributing commits at the end.
pub(super) fn pay_simplified(
    config: &SimplifiedReward,
    inputs: &RewardInputs,
    state: &RewardState,
    out: &mut RewardBreakdown,
) {
    if inputs.op != LifecycleOp::Wait {
        out.pay(Term::Intervention, -config.simplified_action_cost);
    }
    if inputs.is_final && !config.disable_terminal_reward {
        out.pay(
            Term::TerminalAccuracy,
            config.simplified_accuracy_weight * inputs.accuracy / 100.0,
        );
        out.pay(
            Term::TerminalFossil,
            config.simplified_fossil_bonus * f64::from(state.contributing),
        );
    }
}

/// A bonus per commit, linear rent, the episode's gain at the end.
pub(super) fn pay_basic(config: &BasicReward, inputs: &RewardInputs, state: &RewardState, out: &mut RewardBreakdown) {
    let effective = effective_params(inputs.after(), inputs.host_params, config.base_slot_rent_ratio);
    let rent = linear_rent(config.param_penalty_weight, effective, config.param_budget);
    out.context.effective_params = Some(effective);
    out.context.delta_cf = state.delta_cf(inputs.step, config.max_staleness);
    out.pay(Term::LinearRent, rent);
    out.pay(
        Term::AutoPrune,
        config.auto_prune_penalty * f64::from(inputs.auto_pruned),
    );
    if inputs.op == LifecycleOp::Fossilize {
        out.pay(Term::FossilizeBonus, basic_commit(config, inputs, state));
    }
    if inputs.is_final {
        let first = state.first_accuracy.unwrap_or(inputs.accuracy);
        let gain = config.basic_acc_weight * (inputs.accuracy - first) / 100.0;
        out.pay(Term::TerminalGain, gain);
    }
}

fn basic_commit(config: &BasicReward, inputs: &RewardInputs, state: &RewardState) -> f64 {
    let Some(seed) = inputs.acted().filter(|seed| seed.stage == SeedStage::Holding) else {
        return 0.0;
    };
    let delta = state
        .delta_cf(inputs.step, config.max_staleness)
        .filter(|delta| *delta > 0.0);
    let contribution = seed.fresh_contribution(config.max_staleness);
    match (delta, contribution) {
        (Some(delta), Some(points)) if points >= config.min_fossilize_contribution => {
            let credited = combine(config.attribution_formula, delta, points);
            let bonus = config.basic_base_bonus + config.basic_contribution_scale * credited;
            bonus * legitimacy(seed.epochs_in_stage, config.min_holding_epochs)
        }
        (None, Some(points)) if points > INVALID_FROM_CONTRIBUTION => config.basic_invalid_penalty,
        _ => config.basic_noncontributing_penalty,
    }
}

/// Nothing until the end; then committed accuracy less the committed parameters' share of the budget.
pub(super) fn pay_sparse(
    config: &SparseReward,
    inputs: &RewardInputs,
    out: &mut RewardBreakdown,
) -> Result<(), RewardError> {
    if !inputs.is_final {
        return Ok(());
    }
    let accuracy = inputs.committed_accuracy.ok_or(RewardError::MissingMeasurement(
        "the committed accuracy of the last step",
    ))?;
    let params: u64 = inputs.fossils().map(|seed| seed.params).sum();
    let cost = config.param_penalty_weight * params as f64 / config.param_budget as f64;
    let outcome = (accuracy / 100.0 - cost).clamp(-1.0, 1.0);
    out.pay(Term::SparseOutcome, config.sparse_reward_scale * outcome);
    Ok(())
}

/// The change of the validation loss (negative = better), less rent; how far the loss got at the end.
pub(super) fn pay_loss(
    config: &LossReward,
    inputs: &RewardInputs,
    state: &RewardState,
    out: &mut RewardBreakdown,
) -> Result<(), RewardError> {
    let loss = finite("the validation loss", inputs.loss)?;
    let scale = config.scale();
    if let Some(previous) = state.previous_loss {
        let change = (loss - previous) / scale.typical_delta;
        let bounded = change.clamp(-config.max_loss_delta, config.max_loss_delta);
        let weighed = match bounded > 0.0 {
            true => config.regression_penalty_scale * bounded,
            false => bounded,
        };
        out.pay(Term::LossDelta, -config.loss_delta_weight * weighed);
    }
    let is_due = |age| age >= config.grace_epochs;
    let occupied = inputs.after().filter(|seed| seed.stage.is_occupied());
    let params: u64 = occupied.filter(|seed| is_due(seed.age)).map(|seed| seed.params).sum();
    let growth = params as f64 / inputs.host_params as f64;
    let rent = (scale.rent_weight * growth.ln_1p()).min(config.max_rent_penalty);
    out.context.effective_params = Some(params as f64);
    out.pay(Term::ComputeRent, -rent);
    out.pay(
        Term::AutoPrune,
        config.auto_prune_penalty * f64::from(inputs.auto_pruned),
    );
    if inputs.is_final {
        let reached = (scale.baseline - loss) / (scale.baseline - scale.target);
        out.pay(
            Term::TerminalLoss,
            config.terminal_loss_weight * reached.clamp(0.0, 1.0),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
