//! The rule-based controller: germinate on a plateau, move seeds on, commit what contributes, prune what fails.
//!
//! Deterministic: it draws nothing. Each env has its own [`HeuristicState`], forgotten at the start of an episode.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::context::BuildContext;
use super::controller::Controller;
use crate::actions::{Decision, MaskSet, PolicyError};
use crate::controller::view::{DecisionView, EnvRow, EnvView};
use crate::growth::{
    AlphaCurveAction, AlphaMode, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleCommand, LifecycleOp, SeedStage,
    Tempo,
};
use crate::health::Failure;
use crate::scenario::{GateMode, HeuristicConfig};
use crate::seed::{ALPHA_TOLERANCE, MIN_CONTRIBUTION, SeedReport};
use crate::unfinished::UnfinishedRound;

/// Steps of rest after a prune.
const EMBARGO_STEPS: u32 = 5;
/// Steps in a stage before a failing seed is pruned.
const PATIENCE_STEPS: u32 = 5;
/// Contribution, in percentage points, above which a host that has gained nothing since the germination merely depends on the
/// seed.
const DEPENDENCY: f64 = 0.1;
/// Penalty that a prune puts on the seed's blueprint.
const PENALTY_ON_PRUNE: f64 = 2.0;
/// Factor of every penalty per step.
const PENALTY_DECAY: f64 = 0.93;
/// A blueprint with this penalty or more is skipped: with the decay, for ten steps after a prune.
const SKIPPED_FROM: f64 = 1.0;
/// A penalty below this is forgotten.
const SMALLEST_PENALTY: f64 = 0.1;
/// The states of all envs, in a checkpoint inside a round.
const STATES: &str = "controller.states";

/// A command with its reason.
type Proposal = (LifecycleCommand, Cow<'static, str>);

#[derive(Clone, Debug)]
pub struct HeuristicController {
    rules: Rules,
    states: BTreeMap<usize, HeuristicState>,
}

/// The constants of the rules, names resolved.
#[derive(Clone, Debug)]
struct Rules {
    config: HeuristicConfig,
    /// Blueprint indices, in the order of `config.rotation`.
    rotation: Vec<usize>,
    /// Steps a seed trains before it is moved on: the minimum of its gate.
    min_training_steps: u32,
    /// Percentage points that a commit needs.
    commit_above: f64,
}

/// The rules' memory of one env's episode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeuristicState {
    /// Position in the rotation. It grows without bound.
    rotation_index: usize,
    last_prune_step: Option<u32>,
    last_decay_step: Option<u32>,
    /// By blueprint index.
    penalties: BTreeMap<usize, f64>,
}

impl HeuristicController {
    /// Reads `policy.heuristic`, and the gates' minima from `lifecycle`.
    ///
    /// # Errors
    /// An empty rotation, a blueprint in it that no slot can grow, or none in it that the action space allows.
    pub fn new(context: &BuildContext) -> Result<Self, PolicyError> {
        let mut config = context.scenario.policy.heuristic.clone();
        let path = "policy.heuristic.rotation";
        if config.rotation.is_empty() {
            return Err(PolicyError::config(path, "is empty; name a blueprint"));
        }
        let allowed = context.allowed_actions().blueprints();
        let mut rotation = Vec::new();
        // The default rotation names blueprints of every kind of host. Those that fit this one remain.
        let is_default = config.rotation == HeuristicConfig::default().rotation;
        for name in std::mem::take(&mut config.rotation) {
            let blueprint = match context.blueprint(path, &name) {
                Err(_) if is_default => continue,
                found => found?,
            };
            if allowed.contains(blueprint) {
                rotation.push(blueprint);
                config.rotation.push(name);
            }
        }
        if rotation.is_empty() {
            return Err(PolicyError::config(
                path,
                "no blueprint of the rotation is in the action space",
            ));
        }
        let gates = &context.scenario.lifecycle.gates;
        let gate_minimum = match gates.mode {
            GateMode::Strict => MIN_CONTRIBUTION,
            GateMode::Permissive => f64::NEG_INFINITY,
        };
        Ok(Self {
            rules: Rules {
                rotation,
                min_training_steps: gates.min_training_steps,
                commit_above: config.min_improvement_to_commit.max(gate_minimum),
                config,
            },
            states: BTreeMap::new(),
        })
    }
}

impl Controller for HeuristicController {
    fn name(&self) -> &str {
        "heuristic"
    }

    fn begin_episode(&mut self, rows: &[EnvRow]) {
        for row in rows {
            self.states.insert(row.env, HeuristicState::default());
        }
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        Ok(view
            .envs
            .iter()
            .zip(masks)
            .map(|(env, masks)| {
                let state = self.states.entry(env.row.env).or_default();
                self.rules.decide(state, view.step, env, masks)
            })
            .collect())
    }

    fn save_episodes(&mut self, round: &mut UnfinishedRound) -> Result<(), Failure> {
        Ok(round.put(STATES, &self.states)?)
    }

    fn restore_episodes(&mut self, round: &UnfinishedRound) -> Result<(), Failure> {
        self.states = round.get(STATES)?;
        Ok(())
    }
}

impl Rules {
    fn decide(&self, state: &mut HeuristicState, step: u32, env: &EnvView, masks: &MaskSet) -> Decision {
        state.decay_penalties(step);
        let live = || {
            let slots = env.reports.iter().enumerate();
            slots.filter_map(|(slot, seed)| Some((slot, seed.as_ref()?)))
        };
        let proposal = live()
            .filter(|(_, seed)| seed.stage.is_live())
            .map(|(slot, seed)| self.manage(slot, seed))
            // The first of equals: the lowest slot.
            .min_by_key(|(command, _)| priority(command.op()))
            .unwrap_or_else(|| self.germinate(state, step, env, masks));
        let (command, reason) = match masks.objection(&proposal.0) {
            None => proposal,
            Some(why) => (
                LifecycleCommand::Wait,
                format!("{} ({} is not legal: {why})", proposal.1, proposal.0.op()).into(),
            ),
        };
        if let LifecycleCommand::Prune { slot, .. } = command {
            state.last_prune_step = Some(step);
            if let Some(seed) = &env.reports[slot] {
                let penalty = state.penalties.entry(seed.blueprint_index).or_default();
                *penalty += PENALTY_ON_PRUNE;
            }
        }
        Decision::new(command, masks, reason)
    }

    /// The proposal while nothing grows.
    fn germinate(&self, state: &mut HeuristicState, step: u32, env: &EnvView, masks: &MaskSet) -> Proposal {
        let config = &self.config;
        let in_embargo = state
            .last_prune_step
            .is_some_and(|pruned| step.saturating_sub(pruned) < EMBARGO_STEPS);
        if in_embargo {
            return wait("embargo");
        }
        if !env.signals.host_stabilized {
            return wait("host not stabilised");
        }
        if step < config.min_steps_before_germinate {
            return wait("too early");
        }
        let Some(slot) = masks.slots_for(LifecycleOp::Germinate).lowest() else {
            return wait("no slot");
        };
        if env.signals.plateau_steps < config.plateau_steps_to_germinate {
            return wait("still improving");
        }
        let command = LifecycleCommand::Germinate {
            slot,
            blueprint: self.next_blueprint(state),
            style: GerminationStyle::SigmoidAdd,
            tempo: Tempo::Standard,
            target: AlphaTarget::Full,
        };
        (command, "plateau".into())
    }

    /// The next blueprint of the rotation that isn't penalised, or else the least penalised ones, one after another.
    fn next_blueprint(&self, state: &mut HeuristicState) -> usize {
        let count = self.rotation.len();
        let start = state.rotation_index;
        for position in start..start + count {
            let blueprint = self.rotation[position % count];
            if state.penalty(blueprint) < SKIPPED_FROM {
                state.rotation_index = position + 1;
                return blueprint;
            }
        }
        state.rotation_index = start + 1;
        let mut by_penalty: Vec<usize> = (0..count).collect();
        by_penalty.sort_by(|&a, &b| {
            let penalty = |position: usize| state.penalty(self.rotation[position]);
            let name = |position: usize| &self.config.rotation[position];
            penalty(a).total_cmp(&penalty(b)).then_with(|| name(a).cmp(name(b)))
        });
        self.rotation[by_penalty[start % count]]
    }

    /// The proposal for one live seed.
    fn manage(&self, slot: usize, seed: &SeedReport) -> Proposal {
        let is_failing = seed.steps_in_stage >= PATIENCE_STEPS
            && seed.improvement_since_stage_start < -self.config.prune_if_accuracy_drops_by;
        match seed.stage {
            SeedStage::Germinated => advance(slot, "start training"),
            SeedStage::Training | SeedStage::Blending if is_failing => prune(slot, "failing"),
            SeedStage::Training if seed.steps_in_stage >= self.min_training_steps => advance(slot, "trained"),
            SeedStage::Training => wait("training"),
            SeedStage::Blending => blend(slot, seed),
            SeedStage::Holding => self.judge(slot, seed),
            _ => wait("not live"),
        }
    }

    /// Commit or prune a held seed by what it contributes.
    fn judge(&self, slot: usize, seed: &SeedReport) -> Proposal {
        let Some(contribution) = seed.contribution else {
            return wait("contribution unknown");
        };
        if contribution > DEPENDENCY && seed.total_improvement < 0.0 {
            prune(slot, "dependency without value")
        } else if contribution > self.commit_above {
            (LifecycleCommand::Commit { slot }, "contributes".into())
        } else {
            prune(slot, "contributes too little")
        }
    }
}

impl HeuristicState {
    fn penalty(&self, blueprint: usize) -> f64 {
        self.penalties.get(&blueprint).copied().unwrap_or(0.0)
    }

    fn decay_penalties(&mut self, step: u32) {
        let elapsed = self.last_decay_step.map_or(0, |last| step.saturating_sub(last));
        self.last_decay_step = Some(step);
        for _ in 0..elapsed {
            self.penalties.retain(|_, penalty| {
                *penalty *= PENALTY_DECAY;
                *penalty >= SMALLEST_PENALTY
            });
        }
    }
}

/// Lower comes first.
const fn priority(op: LifecycleOp) -> u8 {
    match op {
        LifecycleOp::Prune => 0,
        LifecycleOp::Commit => 1,
        LifecycleOp::SetAlphaTarget => 2,
        LifecycleOp::Advance => 3,
        LifecycleOp::Germinate => 4,
        LifecycleOp::Wait => 5,
    }
}

/// The proposal for a blending seed that is not failing.
fn blend(slot: usize, seed: &SeedReport) -> Proposal {
    if seed.alpha_mode != AlphaMode::Hold {
        return wait("blending");
    }
    if seed.alpha_target < 1.0 - ALPHA_TOLERANCE {
        let command = LifecycleCommand::SetAlphaTarget {
            slot,
            style: style_of(seed),
            target: AlphaTarget::Full,
            speed: AlphaSpeed::Medium,
            curve: AlphaCurveAction::Linear,
        };
        return (command, "blend in fully".into());
    }
    if (seed.alpha - seed.alpha_target).abs() <= ALPHA_TOLERANCE {
        advance(slot, "blended")
    } else {
        wait("blending")
    }
}

/// A style that keeps the seed's blend operator.
fn style_of(seed: &SeedReport) -> GerminationStyle {
    GerminationStyle::ALL
        .iter()
        .copied()
        .find(|style| style.algorithm() == seed.algorithm)
        .unwrap_or(seed.style)
}

fn wait(reason: &'static str) -> Proposal {
    (LifecycleCommand::Wait, reason.into())
}

fn advance(slot: usize, reason: &'static str) -> Proposal {
    (LifecycleCommand::Advance { slot }, reason.into())
}

fn prune(slot: usize, reason: &'static str) -> Proposal {
    let command = LifecycleCommand::Prune {
        slot,
        speed: AlphaSpeed::Instant,
        curve: AlphaCurveAction::Linear,
    };
    (command, reason.into())
}

#[cfg(test)]
mod tests;
