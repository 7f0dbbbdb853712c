//! The modes that pay a bonus per commit: at once, or in part for as long as the seed contributes.

use super::attribution::{CONTRIBUTING, POTENTIAL_WEIGHT, combine, progress};
use super::costs::{SLOT_RENT_RATIO, auto_prune, linear_rent};
use super::memory::{Instalments, Memory, remembering};
use super::shaped::legitimacy;
use crate::prelude::*;

/// Contribution from which a commit within a harmful coalition is fined, percentage points.
const INVALID_FROM_CONTRIBUTION: f64 = 0.1;
/// Reward of committing a contributing seed, and further per percentage point that it is credited with.
const COMMIT_BONUS: f64 = 0.3;
const COMMIT_RATE: f64 = 0.5;
/// Reward of committing a seed while the seeds together do harm, and one that contributes too little.
const HARMFUL_COMMIT: f64 = -0.5;
const WORTHLESS_COMMIT: f64 = -0.2;
/// Reward of 100 percentage points gained over the episode.
const GAIN_WEIGHT: f64 = 5.0;
/// Share of a bonus that is paid in instalments, their least number, and the most that one seed is paid in a step.
const DRIP_FRACTION: f64 = 0.7;
const MIN_DRIP_STEPS: u32 = 5;
const MAX_DRIP: f64 = 0.1;
/// Share of an instalment that a seed is charged at most when it does harm.
const NEGATIVE_DRIP_RATIO: f64 = 0.5;

/// A bonus per commit, the accuracy gained over the episode with committed seeds alone, linear rent.
#[derive(Clone, Copy, Debug)]
pub struct BasicReward;

impl RewardMode for BasicReward {
    fn pay(&self, step: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        remembering(step, state, |memory| {
            pay_but_bonus(step, memory, out)?;
            out.pay(Term::CommitBonus, commit_bonus(step, memory));
            Ok(())
        })
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile::needing(MeasurementNeed::AtCommit)
    }

    fn potential_weight(&self) -> Option<f64> {
        Some(POTENTIAL_WEIGHT)
    }
}

/// Linear rent, seeds that the engine removed, the episode's gain at the end.
fn pay_but_bonus(inputs: &RewardInputs, memory: &Memory, out: &mut RewardBreakdown) -> Result<(), RewardError> {
    out.delta_cf = inputs.delta_cf;
    out.pay(Term::LinearRent, linear_rent(inputs.effective_params(SLOT_RENT_RATIO)));
    out.pay(Term::AutoPrune, auto_prune(inputs));
    if inputs.is_final {
        let last = inputs.committed_accuracy()?;
        let gain = last - memory.first_accuracy.unwrap_or(last);
        out.pay(Term::TerminalGain, GAIN_WEIGHT * gain / 100.0);
    }
    Ok(())
}

/// Pay or fine for a commit in this step. It counts the seed's contribution as far as all growing seeds together contribute,
/// the env has gained since the germination, and the committed network since the first step.
fn commit_bonus(inputs: &RewardInputs, memory: &Memory) -> f64 {
    let committed = inputs.acted().filter(|_| inputs.op == LifecycleOp::Commit);
    let Some(seed) = committed.filter(|seed| seed.stage == SeedStage::Holding) else {
        return 0.0;
    };
    let delta = inputs.delta_cf.filter(|delta| *delta > 0.0);
    match (delta, seed.contribution) {
        (Some(delta), Some(points)) if points >= CONTRIBUTING => {
            let gained = delta.min(progress(inputs, seed)).min(committed_gain(inputs, memory));
            let credited = combine(gained, points);
            let bonus = COMMIT_BONUS + COMMIT_RATE * credited;
            match credited > 0.0 {
                true => bonus * legitimacy(seed.steps_in_stage),
                false => WORTHLESS_COMMIT,
            }
        }
        (None, Some(points)) if points > INVALID_FROM_CONTRIBUTION => HARMFUL_COMMIT,
        _ => WORTHLESS_COMMIT,
    }
}

/// Gain of the network with committed seeds alone since the first step, percentage points: a seed that only repairs the damage of
/// another commit gains nothing. There is no bound if it was not measured.
fn committed_gain(inputs: &RewardInputs, memory: &Memory) -> f64 {
    let measured = inputs.committed_accuracy.zip(memory.first_accuracy);
    measured.map_or(f64::INFINITY, |(committed, first)| committed - first)
}

/// Basic, but part of a commit's bonus is paid in instalments for as long as the seed contributes as much.
#[derive(Clone, Copy, Debug)]
pub struct BasicPlusReward;

impl RewardMode for BasicPlusReward {
    fn pay(&self, step: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        remembering(step, state, |memory| {
            pay_but_bonus(step, memory, out)?;
            out.pay(Term::Drip, drip(step, memory)?);
            let bonus = commit_bonus(step, memory);
            if bonus <= 0.0 {
                out.pay(Term::CommitBonus, bonus);
                return Ok(());
            }
            out.pay(Term::CommitBonus, (1.0 - DRIP_FRACTION) * bonus);
            let contribution = step.acted().and_then(|seed| seed.contribution);
            if let (Some(contribution), Some(kept)) = (contribution, step.slot.and_then(|slot| memory.of_mut(slot))) {
                let steps = step.max_steps.saturating_sub(step.step).max(MIN_DRIP_STEPS);
                kept.instalments = Some(Instalments {
                    amount: DRIP_FRACTION * bonus / f64::from(steps),
                    contribution,
                });
            }
            Ok(())
        })
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile {
            measures_committed: true,
            ..RewardProfile::needing(MeasurementNeed::Fresh)
        }
    }

    fn potential_weight(&self) -> Option<f64> {
        Some(POTENTIAL_WEIGHT)
    }
}

/// The instalments of seeds committed in earlier steps, by the share of its contribution that each has kept.
fn drip(inputs: &RewardInputs, memory: &Memory) -> Result<f64, RewardError> {
    let mut sum = 0.0;
    for (slot, seed) in inputs.before() {
        let Some(due) = memory.of(slot).and_then(|seed| seed.instalments) else {
            continue;
        };
        let now = seed
            .contribution
            .ok_or(RewardError::MissingMeasurement("the contribution of a committed seed"))?;
        let share = (now / due.contribution).clamp(-NEGATIVE_DRIP_RATIO, 1.0);
        let least = -NEGATIVE_DRIP_RATIO * MAX_DRIP;
        sum += (due.amount * share).clamp(least, MAX_DRIP);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests;
