//! When the rules germinate, move on, commit and prune.

use super::*;
use crate::actions::fixtures::{BLUEPRINT_NAMES, empty, report};
use crate::controller::fixtures::{Ground, Scene};

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
        age_steps: 20,
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
    assert_eq!(held(Some(3.0), 5.0), LifecycleOp::Commit);
    assert_eq!(held(Some(1.0), -0.5), LifecycleOp::Prune);
    assert_eq!(held(Some(0.3), 1.0), LifecycleOp::Prune);
    assert_eq!(held(None, 1.0), LifecycleOp::Wait);
}

#[test]
fn strict_gates_raise_what_a_commit_needs() {
    let mut ground = Ground::default();
    ground.scenario.lifecycle.gates.mode = GateMode::Strict;
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
        LifecycleCommand::Commit { slot: 1 }
    );
}

#[test]
fn an_illegal_proposal_becomes_a_wait_that_keeps_its_reason() {
    let young = SeedReport {
        age_steps: 4,
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

#[test]
fn a_saved_state_resumes_where_it_was() {
    let mut round = UnfinishedRound::default();
    let mut saved = HeuristicController::new(&Ground::default().context()).unwrap();
    let state = HeuristicState {
        rotation_index: 3,
        last_prune_step: Some(12),
        last_decay_step: Some(14),
        penalties: [(1, 1.7298)].into(),
    };
    saved.states.insert(5, state);
    saved.save_episodes(&mut round).unwrap();

    let mut loaded = HeuristicController::new(&Ground::default().context()).unwrap();
    loaded.restore_episodes(&round).unwrap();

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
    ground.scenario.policy.heuristic.rotation = vec!["conv_light".into(), "lora".into()];
    let error = HeuristicController::new(&ground.context()).unwrap_err();
    assert!(error.to_string().contains("no slot of this host can grow `lora`"));
}

#[test]
fn the_rotation_passes_over_what_the_action_space_excludes() {
    let mut ground = Ground::default();
    ground.scenario.policy.masks.action_space.blueprint = Some(vec!["norm".into(), "conv_small".into()]);
    let controller = HeuristicController::new(&ground.context()).unwrap();
    assert_eq!(controller.rules.rotation, [3]);
    assert_eq!(controller.rules.config.rotation, ["norm"]);

    ground.scenario.policy.masks.action_space.blueprint = Some(vec!["conv_small".into()]);
    let error = HeuristicController::new(&ground.context()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`policy.heuristic.rotation`: no blueprint of the rotation is in the action space"
    );
}

/// 10 steps by the gate's minimum, none where the scenario says so.
#[test]
fn a_seed_trains_as_long_as_configured_or_as_the_gate_demands() {
    let wait_for = |ground: &Ground| {
        HeuristicController::new(&ground.context())
            .unwrap()
            .rules
            .min_training_epochs
    };
    let mut ground = Ground::default();
    assert_eq!(wait_for(&ground), 10);
    ground.scenario.policy.heuristic.min_training_epochs = Some(0);
    assert_eq!(wait_for(&ground), 0);
}
