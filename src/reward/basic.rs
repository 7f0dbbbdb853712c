//! The modes that pay a bonus per commit: at once, or in part for as long as the seed goes on contributing.

use super::attribution::{CONTRIBUTING, combine, progress};
use super::breakdown::{RewardBreakdown, Term};
use super::costs::{SLOT_RENT_RATIO, auto_prune, effective_params, linear_rent};
use super::inputs::{RewardError, RewardInputs};
use super::mode::RewardMode;
use super::potential::Potential;
use super::shaped::legitimacy;
use super::state::{Instalments, RewardState};
use crate::growth::{LifecycleOp, SeedStage};
use crate::scenario::{BasicPlusReward, BasicReward, MeasurementNeed, RewardProfile};

/// Contribution from which a commit within a harmful coalition is fined, percentage points.
const INVALID_FROM_CONTRIBUTION: f64 = 0.1;
/// Reward of committing a contributing seed, and further per percentage point that it is credited with.
const COMMIT_BONUS: f64 = 0.3;
const COMMIT_RATE: f64 = 0.5;
/// Reward of committing a seed while the seeds together do harm, and one that contributes too little.
const HARMFUL_COMMIT: f64 = -0.5;
const WORTHLESS_COMMIT: f64 = -0.2;
/// Cost of a full parameter budget.
const RENT_WEIGHT: f64 = 0.1;
/// Share of a bonus that is paid in instalments, their least number, and the most that one seed is paid in a step.
const DRIP_FRACTION: f64 = 0.7;
const MIN_DRIP_STEPS: u32 = 5;
const MAX_DRIP: f64 = 0.1;
/// Share of an instalment that a seed is charged at most when it does harm.
const NEGATIVE_DRIP_RATIO: f64 = 0.5;

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

    fn profile(&self) -> RewardProfile {
        RewardProfile {
            measurement: MeasurementNeed::AtCommit {
                max_staleness: self.max_staleness,
            },
            ..RewardProfile::default()
        }
    }

    fn potential(&self) -> Option<Potential> {
        Some(Potential::default())
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
        let effective = effective_params(inputs.after(), inputs.host_params, SLOT_RENT_RATIO);
        let rent = linear_rent(RENT_WEIGHT, effective, self.param_budget);
        out.delta_cf = state.delta_cf(inputs.step, self.max_staleness);
        out.pay(Term::LinearRent, rent);
        out.pay(Term::AutoPrune, auto_prune(inputs));
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
            (Some(delta), Some(points)) if points >= CONTRIBUTING => {
                let gained = delta.min(progress(inputs, seed)).min(committed_gain(inputs, state));
                let credited = combine(gained, points);
                let bonus = COMMIT_BONUS + COMMIT_RATE * credited;
                match credited > 0.0 {
                    true => bonus * legitimacy(seed.epochs_in_stage),
                    false => WORTHLESS_COMMIT,
                }
            }
            (None, Some(points)) if points > INVALID_FROM_CONTRIBUTION => HARMFUL_COMMIT,
            _ => WORTHLESS_COMMIT,
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
        out.pay(Term::FossilizeBonus, (1.0 - DRIP_FRACTION) * bonus);
        let contribution = inputs
            .acted()
            .and_then(|seed| seed.fresh_contribution(self.basic.max_staleness));
        if let (Some(contribution), Some(memory)) = (contribution, state.acted(inputs)) {
            let steps = inputs.max_steps.saturating_sub(inputs.step).max(MIN_DRIP_STEPS);
            memory.instalments = Some(Instalments {
                amount: DRIP_FRACTION * bonus / f64::from(steps),
                contribution,
            });
        }
        Ok(())
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile {
            measurement: MeasurementNeed::Fresh {
                max_staleness: self.basic.max_staleness,
            },
            measures_fossils: true,
            ..RewardProfile::default()
        }
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
            let share = (now / due.contribution).clamp(-NEGATIVE_DRIP_RATIO, 1.0);
            let least = -NEGATIVE_DRIP_RATIO * MAX_DRIP;
            sum += (due.amount * share).clamp(least, MAX_DRIP);
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests;
