use bevy_app::App;

use super::*;
use crate::governor::{Alarm, Credit, Rollback};
use crate::growth::SeedStage;
use crate::reward::RewardPlugin;
use crate::reward::fixtures::{Step, pay, seed, shaped};
use crate::schedule::{Assess, RoundStart, SchedulePlugin};
use crate::telemetry::AlarmKind;

/// An env starts every episode like a fresh one.
#[test]
fn a_round_starts_without_a_past() {
    let mut app = App::new();
    app.add_plugins((SchedulePlugin, RewardPlugin));
    let mut state = RewardState::default();
    let inputs = Step::new(3).slot(seed(SeedStage::Training, 2), seed(SeedStage::Training, 3));
    let breakdown = pay(&shaped(), &inputs.build(), &mut state);
    assert_ne!(state, RewardState::default());
    let env = EnvId { index: 0 };
    let used = (env, state, StepReward(Some(breakdown)));
    let entity = app.world_mut().spawn(used).id();

    app.world_mut().run_schedule(RoundStart);

    let env = app.world().entity(entity);
    assert_eq!(env.get::<RewardState>(), Some(&RewardState::default()));
    assert_eq!(env.get::<StepReward>(), Some(&StepReward::default()));
}

/// A new seed in the slot inherits nothing.
#[test]
fn a_rollback_makes_the_reward_forget_the_seeds_that_it_prunes_and_no_others() {
    let mut app = App::new();
    app.add_plugins((SchedulePlugin, RewardPlugin));
    let mut state = RewardState::default();
    let inputs = Step::new(3)
        .slot(seed(SeedStage::Training, 2), seed(SeedStage::Training, 3))
        .slot(seed(SeedStage::Training, 2), seed(SeedStage::Training, 3));
    pay(&shaped(), &inputs.build(), &mut state);
    let alarm = Alarm {
        kind: AlarmKind::NonFinite,
        loss: f64::NAN,
        threshold: None,
        healthy: None,
        consecutive: 0,
    };
    let rollback = Rollback {
        alarm,
        blamed: true,
        raw_penalty: -10.0,
        snapshot_step: 2,
        steps_lost: 2,
        pruned: smallvec::smallvec![1],
        last_action_step: Some(3),
        credit: Credit::Unattributed,
    };
    let env = EnvId { index: 0 };
    let entity = app
        .world_mut()
        .spawn((env, state, RollbackVerdict(Some(rollback))))
        .id();

    app.world_mut().run_schedule(Assess);

    let state = app.world().get::<RewardState>(entity).unwrap();
    assert!(state.slots[0].is_some());
    assert_eq!(state.slots[1], None);
}
