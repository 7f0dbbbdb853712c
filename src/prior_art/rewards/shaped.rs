//! Attribution, rent, and shaping of what the controller does. A seed is paid once it is committed: what is paid for growing
//! ones pays for never committing them.

use super::attribution::{CONTRIBUTING, POTENTIAL_WEIGHT, SeedValue, commit_credit, ratio_penalty, value_seeds, weigh};
use super::costs;
use super::memory::{Memory, remembering};
use crate::prelude::*;

/// Reward per percent of final accuracy with the committed seeds alone.
const TERMINAL_WEIGHT: f64 = 0.05;

choice! {
    /// Earnings of a seed after its commit.
    #[derive(Copy, Eq)]
    pub enum CommittedAttribution {
        /// the smallest of its last three attributions, at every step
        Frozen,
        /// its share of what the committed seeds add together, as measured at every step
        Live,
        /// nothing
        None,
    }
}

section! {
    /// Dense: the contribution of committed seeds, minus rent, shaped towards committing.
    pub struct ShapedReward {
        /// Reward per percentage point attributed to a seed.
        contribution_weight: f64 = 0.1, NOT_NEGATIVE;
        /// Steps, from its first amplitude on, for which a seed is paid before it is committed. None: no limit, which pays for
        /// holding it.
        growing_pay_steps: Option<u32> = Some(0), at_least(0);
        /// Earnings of a seed after its commit.
        committed_attribution: CommittedAttribution = CommittedAttribution::Live;
        /// Turns off the ratio penalty and the alpha shock.
        disable_anti_gaming: bool;
        /// Turns off potential-based shaping.
        disable_pbrs: bool;
        /// Turns off the completion bonus and the reward of the final accuracy.
        disable_terminal_reward: bool;
    }
}

impl RewardMode for ShapedReward {
    fn pay(&self, step: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        remembering(step, state, |memory| {
            let values = value_seeds(step, step.accuracy, self.contribution_weight);
            self.pay_committed(step, memory, out);
            for value in &values {
                out.pay(Term::Attribution, self.attribution(value, step, memory));
                out.pay(Term::RatioPenalty, self.ratio_penalty(value, step));
                if let Some(seed) = memory.of_mut(value.slot) {
                    seed.remember(value.attribution);
                }
            }
            self.pay_shared(&values, step, memory, out)
        })
    }

    fn profile(&self) -> RewardProfile {
        RewardProfile {
            measures_committed: self.committed_attribution == CommittedAttribution::Live,
            ..RewardProfile::needing(MeasurementNeed::Fresh)
        }
    }

    fn potential_weight(&self) -> Option<f64> {
        (!self.disable_pbrs).then_some(POTENTIAL_WEIGHT)
    }
}

impl ShapedReward {
    /// Attribution of a growing seed in this step, by what was done to it.
    fn attribution(&self, value: &SeedValue, inputs: &RewardInputs, memory: &Memory) -> f64 {
        let commits = inputs.executed(LifecycleOp::Commit, value.slot);
        if commits && does_harm(inputs) {
            return 0.0;
        }
        if inputs.executed(LifecycleOp::Prune, value.slot) || inputs.lost(value.slot) {
            // You lose what you destroy; that a seed did harm earns nothing when it goes.
            return -value.attribution.max(0.0);
        }
        let on_path = memory.of(value.slot).map_or(0, |seed| seed.steps_on_path);
        match self.growing_pay_steps {
            Some(steps) if on_path > steps && !commits => value.attribution.min(0.0),
            _ => value.attribution,
        }
    }

    /// Fine for a seed that claims far more than all seeds add together; at most 0.
    pub fn ratio_penalty(&self, value: &SeedValue, inputs: &RewardInputs) -> f64 {
        match self.disable_anti_gaming {
            true => 0.0,
            false => ratio_penalty(value.contribution, inputs.delta_cf),
        }
    }

    /// Committed seeds: those of earlier steps, as the one of this step is still paid as a growing one.
    fn pay_committed(&self, inputs: &RewardInputs, memory: &Memory, out: &mut RewardBreakdown) {
        let paid = match self.committed_attribution {
            CommittedAttribution::Frozen => memory.frozen_sum(),
            CommittedAttribution::Live => {
                let gain = inputs.committed_gain;
                gain.map_or(0.0, |points| weigh(self.contribution_weight, points))
            }
            CommittedAttribution::None => 0.0,
        };
        out.pay(Term::CommittedAttribution, paid);
    }

    /// Pay that this mode and the escrow have in common: everything but the pay for contributions.
    pub fn pay_shared(
        &self,
        values: &[SeedValue],
        inputs: &RewardInputs,
        memory: &mut Memory,
        out: &mut RewardBreakdown,
    ) -> Result<(), RewardError> {
        for value in values {
            out.pay(Term::Synergy, synergy(value, inputs));
        }
        pay_warnings(values, inputs, out);
        pay_costs(self, inputs, out);
        match inputs.op {
            LifecycleOp::Commit => pay_commit(self, inputs, memory, out),
            LifecycleOp::Prune => {
                if let Some(seed) = inputs.acted() {
                    out.pay(Term::PruneShaping, prune_shaping(seed));
                }
            }
            _ => {}
        }
        for (_, seed) in inputs.before().filter(|(slot, _)| inputs.lost(*slot)) {
            out.pay(Term::PruneShaping, prune_shaping(seed).min(0.0));
        }
        if inputs.is_final && !self.disable_terminal_reward {
            let accuracy = inputs.committed_accuracy()?;
            out.pay(Term::TerminalAccuracy, TERMINAL_WEIGHT * accuracy);
        }
        let acted = inputs.slot.filter(|_| inputs.op != LifecycleOp::Wait);
        let value = values.iter().find(|value| Some(value.slot) == acted);
        (out.delta_cf, out.contribution) = (inputs.delta_cf, value.map(|value| value.contribution));
        Ok(())
    }
}

/// Returns whether the growing seeds together make the network worse.
pub fn does_harm(inputs: &RewardInputs) -> bool {
    inputs.delta_cf.is_some_and(|delta| delta < 0.0)
}

/// Most reward per step of seeds that help each other, and how fast it saturates, per percentage point.
const SYNERGY_WEIGHT: f64 = 0.1;
const SYNERGY_GAIN: f64 = 0.5;

fn synergy(value: &SeedValue, inputs: &RewardInputs) -> f64 {
    let interaction = inputs.slots[value.slot]
        .before
        .as_ref()
        .map_or(0.0, |seed| seed.interaction_sum);
    let helps = value.attribution > 0.0 && !does_harm(inputs);
    if helps && interaction > 0.0 {
        SYNERGY_WEIGHT * (SYNERGY_GAIN * interaction).tanh()
    } else {
        0.0
    }
}

/// A warning starts at this and grows by that per step, up to a limit.
const WARNING_BASE: f64 = 0.1;
const WARNING_RATE: f64 = 0.05;
const WARNING_LIMIT: f64 = 0.3;

/// Against letting harmful seeds blend on, and against holding good ones for ever.
fn pay_warnings(values: &[SeedValue], inputs: &RewardInputs, out: &mut RewardBreakdown) {
    let decides_a_seed = matches!(inputs.op, LifecycleOp::Commit | LifecycleOp::Prune);
    for value in values {
        let Some(seed) = &inputs.slots[value.slot].before else {
            continue;
        };
        let n = f64::from(seed.steps_in_stage);
        match seed.stage {
            SeedStage::Blending if value.contribution < 0.0 => {
                let grown = (WARNING_RATE * n).min(WARNING_LIMIT);
                out.pay(Term::BlendingWarning, -WARNING_BASE - grown);
            }
            SeedStage::Holding if n >= 2.0 && value.attribution > 0.0 && !decides_a_seed => {
                let warning = WARNING_BASE + WARNING_RATE * (n - 2.0);
                out.pay(Term::HoldingWarning, -warning.min(WARNING_LIMIT));
            }
            _ => {}
        }
    }
}

fn pay_costs(config: &ShapedReward, inputs: &RewardInputs, out: &mut RewardBreakdown) {
    let effective = inputs.effective_params(costs::SLOT_RENT_RATIO);
    out.pay(Term::ComputeRent, costs::compute_rent(inputs, effective));
    out.pay(Term::OccupancyRent, costs::occupancy_rent(inputs));
    out.pay(Term::CommittedRent, costs::committed_rent(inputs));
    if !config.disable_anti_gaming {
        out.pay(Term::AlphaShock, costs::alpha_shock(inputs));
    }
    out.pay(Term::Intervention, costs::intervention(inputs));
    out.pay(Term::AutoPrune, costs::auto_prune(inputs));
}

/// A seed was committed: bonus or fine, credit of those who helped it, and what it earns from now on.
fn pay_commit(config: &ShapedReward, inputs: &RewardInputs, memory: &mut Memory, out: &mut RewardBreakdown) {
    let (Some(seed), Some(slot)) = (inputs.acted(), inputs.slot) else {
        return;
    };
    let contribution = seed.contribution;
    let (shaping, completion) = commit_shaping(config, seed, inputs);
    out.pay(Term::CommitShaping, shaping);
    out.pay(Term::CompletionBonus, completion);
    if let Some(points) = contribution.filter(|points| *points > 0.0) {
        out.pay(Term::Hindsight, hindsight(inputs, seed, points, memory));
    }
    memory.scaffolds.retain(|pair| pair.beneficiary != seed.seed_id);
    if let Some(kept) = memory.of_mut(slot) {
        let least = kept.recent.iter().copied().reduce(f64::min);
        kept.frozen = Some(least.filter(|_| !does_harm(inputs)).unwrap_or(0.0).max(0.0));
    }
}

/// Steps of holding from which a commit earns its bonus in full.
const FULL_HOLDING_STEPS: u32 = 5;

/// Share of the bonus that a seed has earned by being held.
pub fn legitimacy(steps_in_stage: u32) -> f64 {
    f64::from(steps_in_stage.min(FULL_HOLDING_STEPS)) / f64::from(FULL_HOLDING_STEPS)
}

/// Reward of committing a seed whose joint improvement was never measured.
const UNMEASURED_COMMIT: f64 = -1.0;
/// Reward of committing one of a harmful coalition, and per percentage point of the harm, up to a limit.
const HARMFUL_COMMIT: f64 = -0.5;
const HARM_RATE: f64 = 0.2;
const HARM_LIMIT: f64 = 1.0;
/// Further, if it is worth much by itself: the coalition would hold the host to ransom.
const RANSOM_COMMIT: f64 = -0.3;
/// A seed of a harmful coalition counts as ransomware above this contribution and below this joint improvement, percentage
/// points.
const RANSOM_FROM_CONTRIBUTION: f64 = 0.1;
const RANSOM_BELOW_IMPROVEMENT: f64 = -0.2;
/// Reward of committing a contributing seed, and further per percentage point that it contributes.
const COMMIT_BONUS: f64 = 0.5;
const COMMIT_RATE: f64 = 0.1;
/// Reward of committing a seed that contributes too little.
const WORTHLESS_COMMIT: f64 = -0.2;
/// Scale of the completion bonus, and where it saturates.
const COMPLETION_SCALE: f64 = 3.0;
const COMPLETION_CEILING: f64 = 3.0;

/// `(commit_shaping, completion_bonus)` of committing `seed`.
fn commit_shaping(config: &ShapedReward, seed: &SeedView, inputs: &RewardInputs) -> (f64, f64) {
    let Some(delta) = inputs.delta_cf else {
        return (UNMEASURED_COMMIT, 0.0);
    };
    if delta < 0.0 {
        let claims = seed.contribution;
        let is_ransom =
            claims.is_some_and(|points| points > RANSOM_FROM_CONTRIBUTION) && delta < RANSOM_BELOW_IMPROVEMENT;
        let ransom = if is_ransom { RANSOM_COMMIT } else { 0.0 };
        return (HARMFUL_COMMIT - (HARM_RATE * -delta).min(HARM_LIMIT) + ransom, 0.0);
    }
    match commit_credit(inputs, seed) {
        Some(points) if points >= CONTRIBUTING => {
            let legitimacy = legitimacy(seed.steps_in_stage);
            let bonus = COMMIT_BONUS + COMMIT_RATE * points;
            let completion = match config.disable_terminal_reward {
                true => 0.0,
                false => COMPLETION_SCALE * COMPLETION_CEILING.recip().tanh(),
            };
            (bonus * legitimacy, completion * legitimacy)
        }
        _ => (WORTHLESS_COMMIT, 0.0),
    }
}

/// Most credit of one seed for having helped a committed one, how fast it saturates, and the most per commit.
const HINDSIGHT_WEIGHT: f64 = 0.1;
const HINDSIGHT_GAIN: f64 = 0.1;
const HINDSIGHT_LIMIT: f64 = 0.2;

/// Credit for the seeds that helped a committed one to grow, fading with the steps since.
fn hindsight(inputs: &RewardInputs, seed: &SeedView, contribution: f64, memory: &Memory) -> f64 {
    let credit: f64 = memory
        .scaffolds
        .iter()
        .filter(|pair| pair.beneficiary == seed.seed_id)
        .map(|pair| {
            let help = (HINDSIGHT_GAIN * pair.boost * contribution).tanh();
            let delay = f64::from(inputs.step.saturating_sub(pair.last_step));
            HINDSIGHT_WEIGHT * help * inputs.gamma.powf(delay)
        })
        .sum();
    credit.min(HINDSIGHT_LIMIT)
}

/// Age below which every missing step is fined when a seed is pruned.
const MIN_PRUNE_AGE: u32 = 5;
/// Contribution below which a pruned seed has hurt, percentage points.
const HURTING: f64 = -0.5;
/// Reward of pruning a seed that hurts, one that hurts a little, and one that helps.
const PRUNE_HURTING: f64 = 0.15;
const PRUNE_HARMFUL: f64 = 0.1;
const PRUNE_GOOD: f64 = -0.3;
/// Penalty per percentage point of a pruned seed's contribution, and the limit in multiples of the base penalty.
const PRUNE_CONTRIBUTION_RATE: f64 = 0.05;
const PRUNE_PENALTY_LIMIT: f64 = 3.0;

/// Reward of removing `seed`; the first rule that applies.
fn prune_shaping(seed: &SeedView) -> f64 {
    let contribution = seed.contribution;
    if seed.age < MIN_PRUNE_AGE {
        return PRUNE_GOOD * f64::from(MIN_PRUNE_AGE - seed.age);
    }
    match contribution {
        None => 0.0,
        Some(points) if points < HURTING => PRUNE_HURTING,
        Some(points) if points < 0.0 => PRUNE_HARMFUL,
        Some(points) => (PRUNE_GOOD - PRUNE_CONTRIBUTION_RATE * points).max(PRUNE_PENALTY_LIMIT * PRUNE_GOOD),
    }
}

#[cfg(test)]
mod tests;
