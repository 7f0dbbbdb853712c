//! Tests of the rules: germination, advance, commit and prune.

use super::*;
use crate::actions::fixtures::{BLUEPRINT_NAMES, empty, germination, report};
use crate::controller::fixtures::{Ground, Scene};
use crate::scenario::Scenario;

fn heuristic() -> HeuristicController {
    configured(|_| ()).unwrap()
}

fn configured(change: impl FnOnce(&mut Scenario)) -> Result<HeuristicController, PolicyError> {
    HeuristicController::new(&Ground::with(change).context())
}

/// A host that has stabilised and not improved for `plateau` steps.
fn plateau(step: u32, plateau: u32) -> Scene {
    let mut scene = Scene::new(step, empty(3));
    scene.signals.host_stabilized = true;
    scene.signals.plateau_steps = plateau;
    scene
}

fn with_seed(step: u32, seed: SeedReport) -> Scene {
    let mut scene = plateau(step, 3);
    scene.reports[0] = Some(seed);
    scene
}

fn aged(stage: SeedStage, steps_in_stage: u32) -> SeedReport {
    SeedReport {
        age_steps: 20,
        steps_in_stage,
        ..report(0, stage)
    }
}

fn losing(points: f64) -> SeedReport {
    SeedReport {
        improvement_since_stage_start: -points,
        ..aged(SeedStage::Training, 5)
    }
}

fn blending(alpha_mode: AlphaMode, alpha: f64, alpha_target: f64) -> SeedReport {
    SeedReport {
        alpha_mode,
        alpha,
        alpha_target,
        ..aged(SeedStage::Blending, 3)
    }
}

fn held(contribution: Option<f64>, total_improvement: f64) -> SeedReport {
    SeedReport {
        contribution,
        total_improvement,
        ..aged(SeedStage::Holding, 2)
    }
}

fn penalised(penalties: &[(&str, f64)], rotation_index: usize) -> HeuristicState {
    let index = |name| BLUEPRINT_NAMES.iter().position(|&known| known == name).unwrap();
    let penalties = penalties.iter().map(|&(name, penalty)| (index(name), penalty));
    HeuristicState {
        rotation_index,
        penalties: penalties.collect(),
        ..Default::default()
    }
}

#[test]
fn germinates_in_the_lowest_slot_after_a_plateau_or_says_why_not() {
    let decide = |scene: Scene| scene.decide(&mut heuristic());
    assert_eq!(decide(plateau(10, 3)).command, germination(0, 1));
    let mut unstable = plateau(10, 3);
    unstable.signals.host_stabilized = false;
    let cooling = with_seed(10, report(0, SeedStage::Embargoed));
    for (scene, why) in [
        (plateau(10, 2), "still improving"),
        (unstable, "host not stabilised"),
        (plateau(4, 3), "too early"),
        (cooling, "no slot"),
    ] {
        let decision = decide(scene);
        assert_eq!((decision.command, &*decision.reason), (LifecycleCommand::Wait, why));
    }
}

#[test]
fn a_prune_is_followed_by_an_embargo() {
    let mut controller = heuristic();
    let pruned = with_seed(12, losing(9.0)).decide(&mut controller);
    assert_eq!(pruned.command.op(), LifecycleOp::Prune);
    for step in 13..=16 {
        assert_eq!(plateau(step, 3).decide(&mut controller).reason, "embargo");
    }
    // The pruned blueprint sits out: conv_heavy follows conv_light.
    assert_eq!(plateau(17, 3).decide(&mut controller).command, germination(0, 7));
}

#[test]
fn a_seed_is_moved_on_when_its_time_has_come_and_judged_by_what_it_is_worth() {
    use LifecycleOp::*;
    for (seed, expected) in [
        (aged(SeedStage::Germinated, 1), Advance),
        (aged(SeedStage::Training, 9), Wait),
        (aged(SeedStage::Training, 10), Advance),
        (losing(2.0), Wait),
        (losing(2.01), Prune),
        (aged(SeedStage::Blending, 1), Advance),
        (blending(AlphaMode::Up, 0.4, 1.0), Wait),
        (blending(AlphaMode::Hold, 0.5, 0.5), SetAlphaTarget),
        (held(Some(3.0), 5.0), Commit),
        (held(Some(0.8), 1.0), Commit),
        (held(Some(1.0), -0.5), Prune),
        (held(Some(0.3), 1.0), Prune),
        (held(None, 1.0), Wait),
    ] {
        let decision = with_seed(30, seed.clone()).decide(&mut heuristic());
        assert_eq!(decision.command.op(), expected, "{seed:?}");
    }
}

#[test]
fn strict_gates_raise_what_a_commit_needs() {
    let mut strict = configured(|scenario| scenario.lifecycle.gates.mode = GateMode::Strict).unwrap();
    let decision = with_seed(30, held(Some(0.8), 1.0)).decide(&mut strict);
    assert_eq!(decision.command.op(), LifecycleOp::Prune);
}

#[test]
fn the_most_urgent_proposal_wins_and_then_the_lowest_slot() {
    let mut scene = plateau(30, 3);
    let committable = || Some(held(Some(3.0), 0.0));
    scene.reports = vec![Some(aged(SeedStage::Blending, 1)), committable(), committable()];
    let decision = scene.decide(&mut heuristic());
    assert_eq!(decision.command, LifecycleCommand::Commit { slot: 1 });
}

#[test]
fn an_illegal_proposal_becomes_a_wait_that_keeps_its_reason() {
    let mut young = losing(9.0);
    young.age_steps = 4;
    let mut controller = heuristic();
    let decision = with_seed(30, young).decide(&mut controller);
    assert_eq!(decision.command, LifecycleCommand::Wait);
    let why = "failing (PRUNE is not legal: the seed is 4 steps old, 5 are needed)";
    assert_eq!(decision.reason, why);
    assert_eq!(controller.states[&0].last_prune_step, None);
}

#[test]
fn the_rotation_skips_penalised_blueprints_unless_all_are() {
    let some = [("conv_light", 1.5), ("conv_heavy", 1.2)];
    let all = [
        ("conv_light", 3.0),
        ("conv_heavy", 1.0),
        ("attention", 2.0),
        ("norm", 1.0),
        ("depthwise", 5.0),
    ];
    // The least penalised take turns.
    for (mut state, blueprint, next) in [(penalised(&some, 0), "attention", 3), (penalised(&all, 1), "norm", 2)] {
        let found = heuristic().rules.next_blueprint(&mut state);
        assert_eq!((BLUEPRINT_NAMES[found], state.rotation_index), (blueprint, next));
    }
}

#[test]
fn a_pruned_blueprint_sits_out_ten_steps() {
    let mut state = penalised(&[("conv_light", 2.0)], 0);
    state.last_decay_step = Some(20);
    for (step, expected) in [(29, 1.0408), (30, 0.9680)] {
        state.decay_penalties(step);
        assert!((state.penalty(1) - expected).abs() < 1e-4);
    }
    state.decay_penalties(70);
    assert!(state.penalties.is_empty());
}

#[test]
fn a_saved_state_resumes_where_it_was_and_a_new_episode_starts_with_a_clean_slate() {
    let mut round = UnfinishedRound::default();
    let mut saved = heuristic();
    let state = HeuristicState {
        rotation_index: 3,
        last_prune_step: Some(12),
        last_decay_step: Some(14),
        penalties: [(1, 1.7298)].into(),
    };
    saved.states.insert(0, state);
    saved.save_episodes(&mut round).unwrap();

    let mut loaded = heuristic();
    loaded.restore_episodes(&round).unwrap();
    assert_eq!(loaded.states, saved.states);

    loaded.begin_episode(&[plateau(1, 0).env_view(0).row]);
    assert_eq!(loaded.states[&0], HeuristicState::default());
}

#[test]
fn the_rotation_is_checked_before_the_run_and_passes_over_what_the_action_space_excludes() {
    let unknown = configured(|scenario| scenario.policy.heuristic.rotation = vec!["conv_light".into(), "lora".into()]);
    let why = unknown.unwrap_err().to_string();
    assert!(why.contains("no slot of this host can grow `lora`"), "{why}");

    let allowing = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        configured(|scenario| scenario.policy.masks.action_space.blueprint = Some(names))
    };
    let Rules { rotation, config, .. } = allowing(&["norm", "conv_small"]).unwrap().rules;
    assert_eq!((rotation, config.rotation), (vec![3], vec!["norm".to_string()]));
    let why = "`policy.heuristic.rotation`: no blueprint of the rotation is in the action space";
    assert_eq!(allowing(&["conv_small"]).unwrap_err().to_string(), why);
}
