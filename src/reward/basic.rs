//! The modes that pay a bonus per commit: at once, or in part for as long as the seed goes on contributing.

use super::attribution::{combine, progress};
use super::breakdown::{RewardBreakdown, Term};
use super::costs::{effective_params, linear_rent};
use super::inputs::{RewardError, RewardInputs};
use super::mode::RewardMode;
use super::potential::Potential;
use super::shaped::legitimacy;
use super::state::{Instalments, RewardState};
use crate::growth::{LifecycleOp, SeedStage};
use crate::scenario::{BasicPlusReward, BasicReward};

/// Contribution from which a commit within a harmful coalition is fined, percentage points.
const INVALID_FROM_CONTRIBUTION: f64 = 0.1;

impl RewardMode for BasicReward {
    fn pay(
        &self,
        inputs: &RewardInputs,
        _gamma: f64,
        state: &mut RewardState,
        out: &mut RewardBreakdown,
    ) -> Result<(), RewardError> {
        self.pay_but_bonus(inputs, state, out)?;
        out.pay(Term::FossilizeBonus, self.commit_bonus(inputs, state));
        Ok(())
    }

    fn potential(&self) -> Option<Potential> {
        (!self.disable_pbrs).then_some(Potential {
            weight: self.pbrs_weight,
            progress_bonus: self.epoch_progress_bonus,
            gap_fraction: self.progress_gap_fraction,
        })
    }
}

impl BasicReward {
    /// Linear rent, seeds that the engine removed, the episode's gain at the end.
    fn pay_but_bonus(
        &self,
        inputs: &RewardInputs,
        state: &RewardState,
        out: &mut RewardBreakdown,
    ) -> Result<(), RewardError> {
        let effective = effective_params(inputs.after(), inputs.host_params, self.base_slot_rent_ratio);
        let rent = linear_rent(self.param_penalty_weight, effective, self.param_budget);
        out.context.effective_params = Some(effective);
        out.context.delta_cf = state.delta_cf(inputs.step, self.max_staleness);
        out.pay(Term::LinearRent, rent);
        out.pay(Term::AutoPrune, self.auto_prune_penalty * f64::from(inputs.auto_pruned));
        if inputs.is_final {
            let last = inputs.committed_accuracy()?;
            let gain = last - state.first_accuracy().unwrap_or(last);
            out.pay(Term::TerminalGain, self.basic_acc_weight * gain / 100.0);
        }
        Ok(())
    }

    /// What a commit of this step is paid or fined. It counts what the seed contributes as far as all growing seeds together
    /// do, the env has gained since the germination, and the committed network since the first step.
    fn commit_bonus(&self, inputs: &RewardInputs, state: &RewardState) -> f64 {
        let committed = inputs.acted().filter(|_| inputs.op == LifecycleOp::Fossilize);
        let Some(seed) = committed.filter(|seed| seed.stage == SeedStage::Holding) else {
            return 0.0;
        };
        let delta = state
            .delta_cf(inputs.step, self.max_staleness)
            .filter(|delta| *delta > 0.0);
        let contribution = seed.fresh_contribution(self.max_staleness);
        match (delta, contribution) {
            (Some(delta), Some(points)) if points >= self.min_fossilize_contribution => {
                let gained = delta.min(progress(inputs, seed)).min(committed_gain(inputs, state));
                let credited = combine(self.attribution_formula, gained, points);
                let bonus = self.basic_base_bonus + self.basic_contribution_scale * credited;
                match credited > 0.0 {
                    true => bonus * legitimacy(seed.epochs_in_stage, self.min_holding_epochs),
                    false => self.basic_noncontributing_penalty,
                }
            }
            (None, Some(points)) if points > INVALID_FROM_CONTRIBUTION => self.basic_invalid_penalty,
            _ => self.basic_noncontributing_penalty,
        }
    }
}

/// What the network with committed seeds alone has gained since the first step, percentage points: a seed that repairs what
/// another was committed to break gains nothing. Without a bound where it was not measured.
fn committed_gain(inputs: &RewardInputs, state: &RewardState) -> f64 {
    let measured = inputs.committed_accuracy.zip(state.first_accuracy());
    measured.map_or(f64::INFINITY, |(committed, first)| committed - first)
}

impl RewardMode for BasicPlusReward {
    fn pay(
        &self,
        inputs: &RewardInputs,
        _gamma: f64,
        state: &mut RewardState,
        out: &mut RewardBreakdown,
    ) -> Result<(), RewardError> {
        self.basic.pay_but_bonus(inputs, state, out)?;
        out.pay(Term::Drip, self.drip(inputs, state)?);
        let bonus = self.basic.commit_bonus(inputs, state);
        if bonus <= 0.0 {
            out.pay(Term::FossilizeBonus, bonus);
            return Ok(());
        }
        out.pay(Term::FossilizeBonus, (1.0 - self.drip_fraction) * bonus);
        let contribution = inputs
            .acted()
            .and_then(|seed| seed.fresh_contribution(self.basic.max_staleness));
        if let (Some(contribution), Some(memory)) = (contribution, state.acted(inputs)) {
            let steps = inputs.max_steps.saturating_sub(inputs.step).max(self.min_drip_epochs);
            memory.instalments = Some(Instalments {
                amount: self.drip_fraction * bonus / f64::from(steps),
                contribution,
            });
        }
        Ok(())
    }

    fn potential(&self) -> Option<Potential> {
        self.basic.potential()
    }
}

impl BasicPlusReward {
    /// The instalments of seeds committed in earlier steps, by how much of its contribution each has kept.
    fn drip(&self, inputs: &RewardInputs, state: &RewardState) -> Result<f64, RewardError> {
        let mut sum = 0.0;
        for (slot, seed) in inputs.before() {
            let Some(due) = state.memory(slot).and_then(|memory| memory.instalments) else {
                continue;
            };
            let now = seed
                .fresh_contribution(self.basic.max_staleness)
                .ok_or(RewardError::MissingMeasurement("the contribution of a committed seed"))?;
            let share = (now / due.contribution).clamp(-self.negative_drip_ratio, 1.0);
            let least = -self.negative_drip_ratio * self.max_drip_per_epoch;
            sum += (due.amount * share).clamp(least, self.max_drip_per_epoch);
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests;
