//! Tests of the schedules: their growth steps, their blueprints, and that they advance every seed that may advance.

use super::*;
use crate::actions::fixtures::{empty, germination, report};
use crate::controller::fixtures::{Ground, Scene};
use crate::scenario::Scenario;
use LifecycleCommand::Wait;

fn periodic(change: impl FnOnce(&mut Scenario)) -> Result<GrowthScheduleController, PolicyError> {
    GrowthScheduleController::periodic(&Ground::with(change).context())
}

fn every(period: u32, blueprints: &[&str]) -> GrowthScheduleController {
    let blueprints: Vec<String> = blueprints.iter().map(ToString::to_string).collect();
    let growing = periodic(|scenario| {
        scenario.policy.periodic.period = period;
        scenario.policy.periodic.blueprints = blueprints;
    });
    growing.unwrap()
}

fn aged(stage: SeedStage, steps_in_stage: u32) -> SeedReport {
    SeedReport {
        age_steps: 30,
        steps_in_stage,
        contribution: Some(-1.0),
        ..report(0, stage)
    }
}

/// The command in a step with these seeds in the first slots.
fn command(controller: &mut GrowthScheduleController, step: u32, seeds: &[Option<SeedReport>]) -> LifecycleCommand {
    let mut reports = empty(3);
    reports[..seeds.len()].clone_from_slice(seeds);
    Scene::new(step, reports).decide(controller).command
}

/// `i_max / (1 + exp(4 − gap))` of hand-computed values.
#[test]
fn the_interval_grows_with_the_gap_between_training_and_validation() {
    for (i_max, gap, expected) in [
        (20, 4.0, 10),
        (100, 0.0, 2),
        (100, 2.0, 12),
        (100, 6.0, 88),
        (20, 30.0, 20),
        (20, -50.0, 1),
        (20, 100.0, 20),
    ] {
        assert_eq!(fragrow_interval(i_max, gap), expected, "{i_max} and {gap}");
    }
}

#[test]
fn a_seed_germinates_every_period_and_blueprints_take_turns() {
    let mut controller = every(5, &["conv_light", "norm"]);
    let early = Scene::new(4, empty(3)).decide(&mut controller);
    assert_eq!((early.command, &*early.reason), (Wait, "nothing is due"));
    let held = || Some(aged(SeedStage::Committed, 1));
    for (step, seeds, expected) in [
        (5, vec![], germination(0, 1)),
        (9, vec![held()], Wait),
        (10, vec![held()], germination(1, 3)),
        (15, vec![held(), held()], germination(2, 1)),
    ] {
        assert_eq!(command(&mut controller, step, &seeds), expected, "step {step}");
    }
}

#[test]
fn nothing_grows_beyond_the_most_that_is_asked_for() {
    let mut controller = periodic(|scenario| scenario.policy.periodic.max_growths = Some(1)).unwrap();
    let commands = [10, 20].map(|step| command(&mut controller, step, &[]));
    assert_eq!(commands, [germination(0, 1), Wait]);
}

#[test]
fn a_growth_that_is_not_legal_stays_due() {
    let mut controller = every(5, &["conv_light"]);
    // Sequential germination: nothing germinates next to a seed in training.
    let training = [Some(aged(SeedStage::Training, 3))];
    assert_eq!(command(&mut controller, 5, &training), Wait);
    let blending = [Some(aged(SeedStage::Blending, 1))];
    assert_eq!(command(&mut controller, 6, &blending), germination(1, 1));
    assert_eq!(controller.states[&0].last_growth, 6);
}

#[test]
fn seeds_are_moved_on_as_soon_as_they_may_be() {
    let mut unmeasured = aged(SeedStage::Holding, 1);
    unmeasured.contribution = None;
    let advance = LifecycleCommand::Advance { slot: 1 };
    for (seed, expected) in [
        (aged(SeedStage::Germinated, 1), advance),
        (aged(SeedStage::Training, 9), Wait),
        (aged(SeedStage::Training, 10), advance),
        (aged(SeedStage::Blending, 3), advance),
        (aged(SeedStage::Holding, 1), LifecycleCommand::Commit { slot: 1 }),
        (unmeasured, Wait),
    ] {
        let found = command(&mut every(100, &["conv_light"]), 30, &[None, Some(seed.clone())]);
        assert_eq!(found, expected, "{seed:?}");
    }
}

#[test]
fn seeds_take_turns_so_that_a_gate_that_stays_shut_does_not_hold_up_others() {
    let mut controller = every(100, &["conv_light"]);
    let [held, trained] = [aged(SeedStage::Holding, 9), aged(SeedStage::Training, 12)].map(Some);
    let commands = [30; 3].map(|step| command(&mut controller, step, &[held.clone(), None, trained.clone()]));
    let commit = LifecycleCommand::Commit { slot: 0 };
    assert_eq!(commands, [commit, LifecycleCommand::Advance { slot: 2 }, commit]);
}

#[test]
fn fragrow_waits_longer_where_the_host_overfits() {
    let ground = Ground::default();
    for (train, val, step, expected) in [
        (40.0, 41.0, 1, germination(0, 1)),
        (60.0, 56.0, 18, Wait),
        (60.0, 56.0, 19, germination(0, 1)),
        (90.0, 60.0, 36, Wait),
        (90.0, 60.0, 37, germination(0, 1)),
    ] {
        let mut controller = GrowthScheduleController::fragrow(&ground.context()).unwrap();
        let mut scene = Scene::new(step, empty(3));
        (scene.signals.train_accuracy, scene.signals.val_accuracy) = (train, val);
        let found = scene.decide(&mut controller).command;
        assert_eq!(found, expected, "{train}, {val}, step {step}");
    }
}

/// 150 steps less 37, shared out among three slots.
#[test]
fn the_longest_interval_follows_from_episode_and_slots() {
    let controller = GrowthScheduleController::fragrow(&Ground::default().context()).unwrap();
    assert_eq!(controller.interval, Interval::FittingRisk(37));
}

#[test]
fn blueprints_are_checked_before_the_run() {
    let refusal = |change: fn(&mut Scenario)| periodic(change).unwrap_err().to_string();
    let unknown = refusal(|scenario| scenario.policy.periodic.blueprints = vec!["lora".into()]);
    assert!(unknown.contains("`policy.periodic.blueprints`") && unknown.contains("can grow `lora`"));
    assert!(refusal(|scenario| scenario.policy.periodic.blueprints.clear()).contains("is empty"));
    let excluded = refusal(|scenario| scenario.policy.masks.action_space.blueprint = Some(vec!["norm".into()]));
    let why = "`conv_light` is not in the action space";
    assert!(excluded.contains(why), "{excluded}");
}

#[test]
fn a_saved_state_resumes_where_it_was_and_a_new_episode_resets_it() {
    let mut round = UnfinishedRound::default();
    let mut saved = every(5, &["conv_light"]);
    let state = GrowthState {
        last_growth: 10,
        ordered: 2,
        last_moved: Some(1),
    };
    saved.states.insert(0, state);
    saved.save_episodes(&mut round).unwrap();

    let mut loaded = every(5, &["conv_light"]);
    loaded.restore_episodes(&round).unwrap();
    assert_eq!(loaded.states, saved.states);

    loaded.begin_episode(&[Scene::new(1, empty(3)).env_view(0).row]);
    assert_eq!(loaded.states[&0], GrowthState::default());
}
