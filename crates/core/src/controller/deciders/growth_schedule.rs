//! The controllers that grow by a published schedule: `periodic`, a seed every N steps, and `fragrow`, with an interval that
//! follows the risk of overfitting (Wu et al., "When To Grow? A Fitting Risk-Aware Policy for Layer Growing in Deep Neural
//! Networks", AAAI 2024, arXiv:2401.03104).
//!
//! Both germinate in the next empty slot, advance every seed and commit it as soon as they may, and never prune.
//! Deterministic: they draw nothing. Each env has its own [`GrowthState`], forgotten at the start of an episode.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::context::BuildContext;
use super::controller::Controller;
use crate::actions::{Decision, MaskSet, PolicyError};
use crate::controller::view::{DecisionView, EnvRow, EnvView, TrainingSignals};
use crate::growth::{AlphaTarget, LifecycleCommand, LifecycleOp, SeedStage};
use crate::health::Failure;
use crate::scenario::PeriodicConfig;
use crate::seed::SeedReport;
use crate::unfinished::UnfinishedRound;

/// The gap, in percentage points, at which the interval is half of the longest: α of the paper.
const HALFWAY_GAP: f64 = 4.0;

/// The states of all envs, in a checkpoint inside a round.
const STATES: &str = "controller.states";

/// Grows by a schedule.
#[derive(Clone, Debug)]
pub struct GrowthScheduleController {
    name: &'static str,
    interval: Interval,
    act: GrowthAct,
    states: BTreeMap<usize, GrowthState>,
}

/// Steps from one germination to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Interval {
    Fixed(u32),
    /// The longest interval.
    FittingRisk(u32),
}

/// The settings of germination, names resolved.
#[derive(Clone, Debug)]
struct GrowthAct {
    config: PeriodicConfig,
    /// Indices, in the order of `config.blueprints`.
    blueprints: Vec<usize>,
    /// Steps that a seed trains before its gate lets it through.
    min_training_steps: u32,
}

/// The memory of one env's episode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GrowthState {
    /// Step of the last germination, or 0 before the first.
    last_growth: u32,
    /// Germinations that were ordered.
    ordered: u32,
    /// Slot of the last advanced seed. The next one comes first, so that a gate that stays shut doesn't hold up others.
    last_moved: Option<usize>,
}

impl GrowthScheduleController {
    /// Reads `policy.periodic`.
    ///
    /// # Errors
    /// If there is no blueprint, or one that no slot can grow or that the action space excludes.
    pub fn periodic(context: &BuildContext) -> Result<Self, PolicyError> {
        let period = context.scenario.policy.periodic.period;
        Self::new("periodic", Interval::Fixed(period), context)
    }

    /// Reads `policy.periodic` too, except its period.
    ///
    /// # Errors
    /// The errors of [`Self::periodic`].
    pub fn fragrow(context: &BuildContext) -> Result<Self, PolicyError> {
        Self::new("fragrow", Interval::FittingRisk(longest_interval(context)), context)
    }

    fn new(name: &'static str, interval: Interval, context: &BuildContext) -> Result<Self, PolicyError> {
        let config = &context.scenario.policy.periodic;
        let path = "policy.periodic.blueprints";
        if config.blueprints.is_empty() {
            return Err(PolicyError::config(path, "is empty; name a blueprint"));
        }
        let allowed = context.allowed_actions();
        let resolve = |blueprint: &String| {
            let index = context.blueprint(path, blueprint)?;
            if allowed.blueprints().contains(index) {
                return Ok(index);
            }
            let why = format!("`{blueprint}` is not in the action space, policy.masks.action_space");
            Err(PolicyError::config(path, why))
        };
        let blueprints = config.blueprints.iter().map(resolve).collect::<Result<_, _>>()?;
        Ok(Self {
            name,
            interval,
            act: GrowthAct {
                blueprints,
                config: config.clone(),
                min_training_steps: context.scenario.lifecycle.gates.min_training_steps,
            },
            states: BTreeMap::new(),
        })
    }
}

/// The rule of the paper: the episode without its last part, in which the grown network is trained, divided by the number of
/// growths.
fn longest_interval(context: &BuildContext) -> u32 {
    let growths = u32::try_from(context.slots.len()).unwrap_or(u32::MAX).max(1);
    (context.max_steps - context.max_steps / 4) / growths
}

impl Interval {
    /// The interval in a step with these signals, at least 1.
    fn steps(self, signals: &TrainingSignals) -> u32 {
        match self {
            Self::Fixed(period) => period,
            Self::FittingRisk(i_max) => fragrow_interval(i_max, signals.train_accuracy - signals.val_accuracy),
        }
    }
}

/// `i_max / (1 + exp(α − gap))`, rounded, at least 1: short if the network underfits, long if it overfits. `gap` is
/// training minus validation accuracy, percentage points.
fn fragrow_interval(i_max: u32, gap: f64) -> u32 {
    let steps = f64::from(i_max) / (1.0 + (HALFWAY_GAP - gap).exp());
    // At most `i_max`.
    (steps.round() as u32).max(1)
}

impl Controller for GrowthScheduleController {
    fn name(&self) -> &str {
        self.name
    }

    fn begin_episode(&mut self, rows: &[EnvRow]) {
        for row in rows {
            self.states.insert(row.env, GrowthState::default());
        }
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let decide = |(env, masks): (&EnvView, &MaskSet)| {
            let state = self.states.entry(env.row.env).or_default();
            let is_due = view.step.saturating_sub(state.last_growth) >= self.interval.steps(env.signals);
            let growth = is_due.then(|| self.act.germinate(state, view.step, masks)).flatten();
            match growth.or_else(|| self.act.move_on(state, env, masks)) {
                Some((command, reason)) => Decision::new(command, masks, reason),
                None => Decision::new(LifecycleCommand::Wait, masks, "nothing is due"),
            }
        };
        Ok(view.envs.iter().zip(masks).map(decide).collect())
    }

    fn save_episodes(&mut self, round: &mut UnfinishedRound) -> Result<(), Failure> {
        Ok(round.put(STATES, &self.states)?)
    }

    fn restore_episodes(&mut self, round: &UnfinishedRound) -> Result<(), Failure> {
        self.states = round.get(STATES)?;
        Ok(())
    }
}

/// A command with its reason.
type Move = (LifecycleCommand, &'static str);

impl GrowthAct {
    /// Germinates the next blueprint in the first slot that can grow it. A growth that isn't possible now stays due.
    fn germinate(&self, state: &mut GrowthState, step: u32, masks: &MaskSet) -> Option<Move> {
        if self.config.max_growths.is_some_and(|most| state.ordered >= most) {
            return None;
        }
        let blueprint = self.blueprints[state.ordered as usize % self.blueprints.len()];
        let in_slot = |slot| LifecycleCommand::Germinate {
            slot,
            blueprint,
            style: self.config.style,
            tempo: self.config.tempo,
            target: AlphaTarget::Full,
        };
        let slots = masks.slots_for(LifecycleOp::Germinate);
        let command = slots
            .iter()
            .map(in_slot)
            .find(|command| masks.objection(command).is_none())?;
        (state.last_growth, state.ordered) = (step, state.ordered + 1);
        Some((command, "growth is due"))
    }

    /// Commits or advances a seed that may be. The seeds take turns.
    fn move_on(&self, state: &mut GrowthState, env: &EnvView, masks: &MaskSet) -> Option<Move> {
        let seeds = env.reports.iter().enumerate();
        let moves: Vec<(usize, Move)> = seeds
            .filter_map(|(slot, seed)| Some((slot, self.next_move(slot, seed.as_ref()?)?)))
            .filter(|(_, (command, _))| masks.objection(command).is_none())
            .collect();
        let is_later = |slot: usize| state.last_moved.is_some_and(|last| slot > last);
        let next = moves.iter().find(|(slot, _)| is_later(*slot)).or(moves.first())?;
        state.last_moved = Some(next.0);
        Some(next.1)
    }

    fn next_move(&self, slot: usize, seed: &SeedReport) -> Option<Move> {
        let advance = |reason| Some((LifecycleCommand::Advance { slot }, reason));
        match seed.stage {
            SeedStage::Germinated => advance("start training"),
            SeedStage::Training if seed.steps_in_stage >= self.min_training_steps => advance("trained"),
            SeedStage::Blending if seed.alpha >= seed.alpha_target => advance("blended"),
            SeedStage::Holding => Some((LifecycleCommand::Commit { slot }, "commit")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
