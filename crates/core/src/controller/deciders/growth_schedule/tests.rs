//! When the schedules grow, what they grow, and that they advance every seed that may advance.

use super::*;
use crate::actions::fixtures::{empty, report};
use crate::controller::fixtures::{Ground, Scene};
use crate::growth::{GerminationStyle, SlotId, Tempo};

fn periodic(period: u32, blueprints: &[&str]) -> GrowthScheduleController {
    let mut ground = Ground::default();
    let config = &mut ground.scenario.policy.periodic;
    config.period = period;
    config.growth.blueprints = blueprints.iter().map(|&name| name.into()).collect();
    GrowthScheduleController::periodic(&ground.context()).unwrap()
}

fn germination(slot: usize, blueprint: usize) -> LifecycleCommand {
    LifecycleCommand::Germinate {
        slot,
        blueprint,
        style: GerminationStyle::SigmoidAdd,
        tempo: Tempo::Standard,
        target: AlphaTarget::Full,
    }
}

fn aged(slot: usize, stage: SeedStage, epochs_in_stage: u32) -> SeedReport {
    SeedReport {
        age_steps: 30,
        epochs_in_stage,
        contribution: Some(-1.0),
        ..report(slot, stage)
    }
}

fn with_seeds(step: u32, seeds: impl IntoIterator<Item = SeedReport>) -> Scene {
    let mut scene = Scene::new(step, empty(3));
    for seed in seeds {
        let slot = (0..3).find(|&col| SlotId::new(0, col) == seed.slot).unwrap();
        scene.reports[usize::from(slot)] = Some(seed);
    }
    scene
}

/// `i_max / (1 + exp(4 − gap))` of hand-computed values.
#[test]
fn the_interval_grows_with_the_gap_between_training_and_validation() {
    assert_eq!(fragrow_interval(20, 4.0), 10);
    assert_eq!(fragrow_interval(100, 0.0), 2);
    assert_eq!(fragrow_interval(100, 2.0), 12);
    assert_eq!(fragrow_interval(100, 6.0), 88);
    assert_eq!(fragrow_interval(20, 30.0), 20);
    assert_eq!(fragrow_interval(20, -50.0), 1);
    assert_eq!(fragrow_interval(20, 100.0), 20);
}

#[test]
fn a_seed_germinates_every_period_and_blueprints_take_turns() {
    let mut controller = periodic(5, &["conv_light", "norm"]);
    let early = with_seeds(4, []).decide(&mut controller);
    assert_eq!(
        (early.command, &*early.reason),
        (LifecycleCommand::Wait, "nothing is due")
    );
    assert_eq!(with_seeds(5, []).decide(&mut controller).command, germination(0, 1));

    let held = || aged(0, SeedStage::Committed, 1);
    assert_eq!(
        with_seeds(9, [held()]).decide(&mut controller).command,
        LifecycleCommand::Wait
    );
    assert_eq!(
        with_seeds(10, [held()]).decide(&mut controller).command,
        germination(1, 3)
    );
    let two = [held(), aged(1, SeedStage::Committed, 1)];
    assert_eq!(with_seeds(15, two).decide(&mut controller).command, germination(2, 1));
}

#[test]
fn nothing_grows_beyond_the_most_that_is_asked_for() {
    let mut ground = Ground::default();
    ground.scenario.policy.periodic.growth.max_growths = Some(1);
    let mut controller = GrowthScheduleController::periodic(&ground.context()).unwrap();
    assert_eq!(with_seeds(10, []).decide(&mut controller).command, germination(0, 1));
    assert_eq!(
        with_seeds(20, []).decide(&mut controller).command,
        LifecycleCommand::Wait
    );
}

#[test]
fn a_growth_that_is_not_legal_stays_due() {
    let mut controller = periodic(5, &["conv_light"]);
    // Sequential germination: nothing germinates beside a seed in training.
    let training = aged(0, SeedStage::Training, 3);
    assert_eq!(
        with_seeds(5, [training]).decide(&mut controller).command,
        LifecycleCommand::Wait
    );
    let blending = aged(0, SeedStage::Blending, 1);
    assert_eq!(
        with_seeds(6, [blending]).decide(&mut controller).command,
        germination(1, 1)
    );
    assert_eq!(controller.states[&0].last_growth, 6);
}

#[test]
fn seeds_are_moved_on_as_soon_as_they_may_be() {
    let command = |seed: SeedReport| {
        let mut controller = periodic(100, &["conv_light"]);
        with_seeds(30, [seed]).decide(&mut controller).command
    };
    let advance = LifecycleCommand::Advance { slot: 1 };
    assert_eq!(command(aged(1, SeedStage::Germinated, 1)), advance);
    assert_eq!(command(aged(1, SeedStage::Training, 9)), LifecycleCommand::Wait);
    assert_eq!(command(aged(1, SeedStage::Training, 10)), advance);
    assert_eq!(command(aged(1, SeedStage::Blending, 3)), advance);
    assert_eq!(
        command(aged(1, SeedStage::Holding, 1)),
        LifecycleCommand::Commit { slot: 1 }
    );
    let unmeasured = SeedReport {
        contribution: None,
        ..aged(1, SeedStage::Holding, 1)
    };
    assert_eq!(command(unmeasured), LifecycleCommand::Wait);
}

#[test]
fn seeds_take_turns_so_that_a_gate_that_stays_shut_does_not_hold_up_others() {
    let mut controller = periodic(100, &["conv_light"]);
    let mut command = || {
        let seeds = [aged(0, SeedStage::Holding, 9), aged(2, SeedStage::Training, 12)];
        with_seeds(30, seeds).decide(&mut controller).command
    };
    let (commit, advance) = (
        LifecycleCommand::Commit { slot: 0 },
        LifecycleCommand::Advance { slot: 2 },
    );
    assert_eq!([command(), command(), command()], [commit, advance, commit]);
}

#[test]
fn fragrow_waits_longer_where_the_host_overfits() {
    let mut ground = Ground::default();
    ground.scenario.policy.fragrow.i_max = Some(20);
    let command = |train: f64, val: f64, step: u32| {
        let mut controller = GrowthScheduleController::fragrow(&ground.context()).unwrap();
        let mut scene = with_seeds(step, []);
        (scene.signals.train_accuracy, scene.signals.val_accuracy) = (train, val);
        scene.decide(&mut controller).command
    };
    assert_eq!(command(40.0, 41.0, 1), germination(0, 1));
    assert_eq!(command(60.0, 56.0, 9), LifecycleCommand::Wait);
    assert_eq!(command(60.0, 56.0, 10), germination(0, 1));
    assert_eq!(command(90.0, 60.0, 19), LifecycleCommand::Wait);
    assert_eq!(command(90.0, 60.0, 20), germination(0, 1));
}

/// 150 steps less 37, shared out among three slots.
#[test]
fn the_longest_interval_follows_from_episode_and_slots() {
    let controller = GrowthScheduleController::fragrow(&Ground::default().context()).unwrap();
    assert_eq!(controller.interval, Interval::FittingRisk(37));
}

#[test]
fn blueprints_are_checked_before_the_run() {
    let why = |change: fn(&mut Ground)| {
        let mut ground = Ground::default();
        change(&mut ground);
        GrowthScheduleController::periodic(&ground.context())
            .unwrap_err()
            .to_string()
    };
    let unknown = why(|ground| ground.scenario.policy.periodic.growth.blueprints = vec!["lora".into()]);
    assert!(unknown.contains("`policy.periodic.growth.blueprints`") && unknown.contains("can grow `lora`"));
    assert!(why(|ground| ground.scenario.policy.periodic.growth.blueprints.clear()).contains("is empty"));
    let excluded = why(|ground| ground.scenario.policy.masks.action_space.blueprint = Some(vec!["norm".into()]));
    assert!(
        excluded.contains("`conv_light` is not in the action space"),
        "{excluded}"
    );
}

#[test]
fn a_saved_state_resumes_where_it_was_and_a_new_episode_resets_it() {
    let mut round = UnfinishedRound::default();
    let mut saved = periodic(5, &["conv_light"]);
    let state = GrowthState {
        last_growth: 10,
        ordered: 2,
        last_moved: Some(1),
    };
    saved.states.insert(0, state);
    saved.save_episodes(&mut round).unwrap();

    let mut loaded = periodic(5, &["conv_light"]);
    loaded.restore_episodes(&round).unwrap();
    assert_eq!(loaded.states, saved.states);

    loaded.begin_episode(&[with_seeds(1, []).env_view(0).row]);
    assert_eq!(loaded.states[&0], GrowthState::default());
}
