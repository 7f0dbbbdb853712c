//! The rule-based controller: germinate on a plateau, move seeds on, commit what contributes, prune what fails
//! (spec 03 §9).
//!
//! Deterministic: it draws nothing. Each env has its own [`HeuristicState`], forgotten at the start of an episode.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::saved::{load_controller, save_controller};
use super::{BuildContext, Controller, Decision, DecisionView, EnvRow, EnvView, MaskSet, PolicyError};
use crate::scenario::{GateMode, HeuristicConfig};
use crate::seed::{
    ALPHA_TOLERANCE, AlphaCurveAction, AlphaMode, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleCommand,
    LifecycleOp, SeedReport, SeedStage, Tempo,
};

/// A penalty below this is forgotten.
const SMALLEST_PENALTY: f64 = 0.1;

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
    /// Steps a seed trains before it is moved on.
    min_training_epochs: u32,
    /// Percentage points that a commit needs.
    fossilize_above: f64,
}

/// What the rules remember of one env's episode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeuristicState {
    /// Position in the rotation; grows without bound.
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
    /// An empty rotation, or a blueprint in it that no slot can grow.
    pub fn new(context: &BuildContext) -> Result<Self, PolicyError> {
        let config = &context.policy.heuristic;
        let path = "policy.heuristic.rotation";
        if config.rotation.is_empty() {
            return Err(PolicyError::config(path, "is empty; name a blueprint"));
        }
        let rotation = config
            .rotation
            .iter()
            .map(|name| context.blueprint(path, name))
            .collect::<Result<_, _>>()?;
        let gates = &context.lifecycle.gates;
        let gate_minimum = match gates.mode {
            GateMode::Strict => gates.min_contribution,
            GateMode::Permissive => f64::NEG_INFINITY,
        };
        Ok(Self {
            rules: Rules {
                rotation,
                min_training_epochs: gates.min_training_epochs,
                fossilize_above: config.min_improvement_to_fossilize.max(gate_minimum),
                config: config.clone(),
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

    fn save(&self, folder: &Path) -> Result<(), PolicyError> {
        save_controller(folder, self.name(), None, &self.states)
    }

    fn load(&mut self, folder: &Path) -> Result<(), PolicyError> {
        self.states = load_controller(folder, self.name(), None)?;
        Ok(())
    }
}

impl Rules {
    fn decide(&self, state: &mut HeuristicState, step: u32, env: &EnvView, masks: &MaskSet) -> Decision {
        state.decay_penalties(step, self.config.blueprint_penalty_decay);
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
                *penalty += self.config.blueprint_penalty_on_prune;
            }
        }
        Decision::new(command, masks, reason)
    }

    /// What to do while nothing grows.
    fn germinate(&self, state: &mut HeuristicState, step: u32, env: &EnvView, masks: &MaskSet) -> Proposal {
        let config = &self.config;
        let in_embargo = state
            .last_prune_step
            .is_some_and(|pruned| step.saturating_sub(pruned) < config.embargo_epochs_after_prune);
        if in_embargo {
            return wait("embargo");
        }
        if !env.signals.host_stabilized {
            return wait("host not stabilised");
        }
        if step < config.min_epochs_before_germinate {
            return wait("too early");
        }
        let Some(slot) = masks.slots_for(LifecycleOp::Germinate).lowest() else {
            return wait("no slot");
        };
        if env.signals.plateau_epochs < config.plateau_epochs_to_germinate {
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

    /// The next blueprint of the rotation that is not penalised, else the least penalised ones in turn (spec 03 §9.3).
    fn next_blueprint(&self, state: &mut HeuristicState) -> usize {
        let count = self.rotation.len();
        let start = state.rotation_index;
        for position in start..start + count {
            let blueprint = self.rotation[position % count];
            if state.penalty(blueprint) < self.config.blueprint_penalty_threshold {
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

    /// What to do with one live seed.
    fn manage(&self, slot: usize, seed: &SeedReport) -> Proposal {
        let is_failing = seed.epochs_in_stage >= self.config.prune_after_epochs_without_improvement
            && seed.improvement_since_stage_start < -self.config.prune_if_accuracy_drops_by;
        match seed.stage {
            SeedStage::Germinated => advance(slot, "start training"),
            SeedStage::Training | SeedStage::Blending if is_failing => prune(slot, "failing"),
            SeedStage::Training if seed.epochs_in_stage >= self.min_training_epochs => advance(slot, "trained"),
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
        let is_dependency = contribution > self.config.dependency_contribution_threshold
            && seed.total_improvement < self.config.dependency_improvement_threshold;
        if is_dependency {
            prune(slot, "dependency without value")
        } else if contribution > self.fossilize_above {
            (LifecycleCommand::Fossilize { slot }, "contributes".into())
        } else {
            prune(slot, "contributes too little")
        }
    }
}

impl HeuristicState {
    fn penalty(&self, blueprint: usize) -> f64 {
        self.penalties.get(&blueprint).copied().unwrap_or(0.0)
    }

    fn decay_penalties(&mut self, step: u32, decay: f64) {
        let elapsed = self.last_decay_step.map_or(0, |last| step.saturating_sub(last));
        self.last_decay_step = Some(step);
        for _ in 0..elapsed {
            self.penalties.retain(|_, penalty| {
                *penalty *= decay;
                *penalty >= SMALLEST_PENALTY
            });
        }
    }
}

/// Lower comes first.
const fn priority(op: LifecycleOp) -> u8 {
    match op {
        LifecycleOp::Prune => 0,
        LifecycleOp::Fossilize => 1,
        LifecycleOp::SetAlphaTarget => 2,
        LifecycleOp::Advance => 3,
        LifecycleOp::Germinate => 4,
        LifecycleOp::Wait => 5,
    }
}

/// What to do with a blending seed that does not fail.
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
mod tests {
    use super::*;
    use crate::controller::fixtures::{BLUEPRINT_NAMES, Ground, Scene, empty, report};

    fn heuristic() -> HeuristicController {
        HeuristicController::new(&Ground::default().context()).unwrap()
    }

    /// A host that has stabilised and not improved for `plateau` steps.
    fn plateau(step: u32, plateau: u32) -> Scene {
        let mut scene = Scene::new(step, empty(3));
        scene.signals.host_stabilized = true;
        scene.signals.plateau_epochs = plateau;
        scene
    }

    fn with_seed(step: u32, slot: usize, seed: SeedReport) -> Scene {
        let mut scene = plateau(step, 3);
        scene.reports[slot] = Some(seed);
        scene
    }

    fn aged(stage: SeedStage, epochs_in_stage: u32) -> SeedReport {
        SeedReport {
            age_epochs: 20,
            epochs_in_stage,
            ..report(0, stage)
        }
    }

    fn held(contribution: Option<f64>, total_improvement: f64) -> LifecycleOp {
        let seed = SeedReport {
            contribution,
            total_improvement,
            ..aged(SeedStage::Holding, 2)
        };
        with_seed(30, 0, seed).decide(&mut heuristic()).command.op()
    }

    fn penalised(penalties: &[(&str, f64)], rotation_index: usize) -> HeuristicState {
        let index = |name: &str| BLUEPRINT_NAMES.iter().position(|&n| n == name).unwrap();
        HeuristicState {
            rotation_index,
            penalties: penalties
                .iter()
                .map(|&(name, penalty)| (index(name), penalty))
                .collect(),
            ..Default::default()
        }
    }

    #[test]
    fn germinates_in_the_lowest_slot_after_a_plateau() {
        let decision = plateau(10, 3).decide(&mut heuristic());
        assert_eq!(
            decision.command,
            LifecycleCommand::Germinate {
                slot: 0,
                blueprint: 1,
                style: GerminationStyle::SigmoidAdd,
                tempo: Tempo::Standard,
                target: AlphaTarget::Full,
            }
        );
        let early = plateau(10, 2).decide(&mut heuristic());
        assert_eq!(early.command, LifecycleCommand::Wait);
        assert_eq!(early.reason, "still improving");
    }

    #[test]
    fn says_why_it_does_not_germinate() {
        let mut unstable = plateau(10, 3);
        unstable.signals.host_stabilized = false;
        assert_eq!(unstable.decide(&mut heuristic()).reason, "host not stabilised");
        assert_eq!(plateau(4, 3).decide(&mut heuristic()).reason, "too early");
        let cooling = with_seed(10, 0, report(0, SeedStage::Embargoed));
        assert_eq!(cooling.decide(&mut heuristic()).reason, "no slot");
    }

    #[test]
    fn a_prune_is_followed_by_an_embargo() {
        let mut controller = heuristic();
        let failing = SeedReport {
            improvement_since_stage_start: -9.0,
            ..aged(SeedStage::Training, 5)
        };
        let pruned = with_seed(12, 0, failing).decide(&mut controller);
        assert_eq!(pruned.command.op(), LifecycleOp::Prune);
        for step in 13..=16 {
            assert_eq!(plateau(step, 3).decide(&mut controller).reason, "embargo");
        }
        let next = plateau(17, 3).decide(&mut controller);
        // The pruned blueprint sits out: conv_heavy follows conv_light.
        assert!(matches!(next.command, LifecycleCommand::Germinate { blueprint: 7, .. }));
    }

    #[test]
    fn a_failing_seed_has_to_lose_more_than_two_points() {
        let op = |improvement_since_stage_start| {
            let seed = SeedReport {
                improvement_since_stage_start,
                ..aged(SeedStage::Training, 5)
            };
            with_seed(30, 0, seed).decide(&mut heuristic()).command.op()
        };
        assert_eq!(op(-2.0), LifecycleOp::Wait);
        assert_eq!(op(-2.01), LifecycleOp::Prune);
    }

    #[test]
    fn a_held_seed_is_committed_for_its_contribution_only() {
        assert_eq!(held(Some(3.0), 5.0), LifecycleOp::Fossilize);
        assert_eq!(held(Some(1.0), -0.5), LifecycleOp::Prune);
        assert_eq!(held(Some(0.3), 1.0), LifecycleOp::Prune);
        assert_eq!(held(None, 1.0), LifecycleOp::Wait);
    }

    #[test]
    fn strict_gates_raise_what_a_commit_needs() {
        let mut ground = Ground::default();
        ground.lifecycle.gates.mode = GateMode::Strict;
        let mut strict = HeuristicController::new(&ground.context()).unwrap();
        let seed = SeedReport {
            contribution: Some(0.8),
            total_improvement: 1.0,
            ..aged(SeedStage::Holding, 2)
        };
        let decision = with_seed(30, 0, seed).decide(&mut strict);
        assert_eq!(decision.command.op(), LifecycleOp::Prune);
    }

    #[test]
    fn seeds_are_moved_on_when_their_time_has_come() {
        let op = |seed| with_seed(30, 0, seed).decide(&mut heuristic()).command.op();
        assert_eq!(op(aged(SeedStage::Germinated, 1)), LifecycleOp::Advance);
        assert_eq!(op(aged(SeedStage::Training, 9)), LifecycleOp::Wait);
        assert_eq!(op(aged(SeedStage::Training, 10)), LifecycleOp::Advance);
        assert_eq!(op(aged(SeedStage::Blending, 1)), LifecycleOp::Advance);
        let rising = SeedReport {
            alpha_mode: AlphaMode::Up,
            alpha: 0.4,
            ..aged(SeedStage::Blending, 3)
        };
        assert_eq!(op(rising), LifecycleOp::Wait);
        let halfway = SeedReport {
            alpha: 0.5,
            alpha_target: 0.5,
            ..aged(SeedStage::Blending, 3)
        };
        assert_eq!(op(halfway), LifecycleOp::SetAlphaTarget);
    }

    #[test]
    fn the_most_urgent_proposal_wins_and_then_the_lowest_slot() {
        let mut scene = plateau(30, 3);
        let committable = SeedReport {
            contribution: Some(3.0),
            ..aged(SeedStage::Holding, 2)
        };
        scene.reports[0] = Some(aged(SeedStage::Blending, 1));
        scene.reports[1] = Some(committable.clone());
        scene.reports[2] = Some(committable);
        assert_eq!(
            scene.decide(&mut heuristic()).command,
            LifecycleCommand::Fossilize { slot: 1 }
        );
    }

    #[test]
    fn an_illegal_proposal_becomes_a_wait_that_keeps_its_reason() {
        let young = SeedReport {
            age_epochs: 4,
            improvement_since_stage_start: -9.0,
            ..aged(SeedStage::Training, 5)
        };
        let mut controller = heuristic();
        let decision = with_seed(30, 0, young).decide(&mut controller);
        assert_eq!(decision.command, LifecycleCommand::Wait);
        assert_eq!(
            decision.reason,
            "failing (PRUNE is not legal: the seed is 4 steps old, 5 are needed)"
        );
        assert_eq!(controller.states[&0].last_prune_step, None);
    }

    #[test]
    fn the_rotation_skips_penalised_blueprints() {
        let rules = heuristic().rules;
        let mut state = penalised(&[("conv_light", 1.5), ("conv_heavy", 1.2)], 0);
        assert_eq!(BLUEPRINT_NAMES[rules.next_blueprint(&mut state)], "attention");
        assert_eq!(state.rotation_index, 3);
    }

    #[test]
    fn with_all_penalised_the_least_penalised_take_turns() {
        let rules = heuristic().rules;
        let penalties = [
            ("conv_light", 3.0),
            ("conv_heavy", 1.0),
            ("attention", 2.0),
            ("norm", 1.0),
            ("depthwise", 5.0),
        ];
        let mut state = penalised(&penalties, 1);
        assert_eq!(BLUEPRINT_NAMES[rules.next_blueprint(&mut state)], "norm");
        assert_eq!(state.rotation_index, 2);
    }

    #[test]
    fn a_pruned_blueprint_sits_out_ten_steps() {
        let mut state = penalised(&[("conv_light", 2.0)], 0);
        state.last_decay_step = Some(20);
        state.decay_penalties(29, 0.93);
        assert!((state.penalty(1) - 1.0408).abs() < 1e-4);
        state.decay_penalties(30, 0.93);
        assert!((state.penalty(1) - 0.9680).abs() < 1e-4);
        state.decay_penalties(70, 0.93);
        assert!(state.penalties.is_empty());
    }

    /// Spec 03 §13.
    #[test]
    fn a_saved_state_goes_on_where_it_was() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("heuristic");
        let mut saved = HeuristicController::new(&Ground::default().context()).unwrap();
        let state = HeuristicState {
            rotation_index: 3,
            last_prune_step: Some(12),
            last_decay_step: Some(14),
            penalties: [(1, 1.7298)].into(),
        };
        saved.states.insert(5, state);
        saved.save(&folder).unwrap();

        let mut loaded = HeuristicController::new(&Ground::default().context()).unwrap();
        loaded.load(&folder).unwrap();

        assert_eq!(loaded.states, saved.states);
    }

    #[test]
    fn an_episode_starts_with_a_clean_slate() {
        let mut controller = heuristic();
        controller.states.insert(0, penalised(&[("norm", 2.0)], 4));
        let scene = plateau(1, 0);
        controller.begin_episode(&[scene.env_view(0).row]);
        assert_eq!(controller.states[&0], HeuristicState::default());
    }

    #[test]
    fn the_rotation_is_checked_before_the_run() {
        let mut ground = Ground::default();
        ground.policy.heuristic.rotation = vec!["conv_light".into(), "lora".into()];
        let error = HeuristicController::new(&ground.context()).unwrap_err();
        assert!(error.to_string().contains("no slot of this host can grow `lora`"));
    }
}
