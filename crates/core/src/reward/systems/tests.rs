use bevy_app::App;
use bevy_ecs::schedule::ScheduleLabel;

use super::*;
use crate::governor::{Alarm, Rollback};
use crate::growth::SeedStage;
use crate::reward::RewardPlugin;
use crate::reward::fixtures::{Step, pay, seed};
use crate::scenario::RewardConfig;
use crate::schedule::{Assess, RoundStart, SchedulePlugin};
use crate::telemetry::AlarmKind;

/// An env with these components, and what the schedule makes of it.
fn after(schedule: impl ScheduleLabel, components: impl Bundle) -> (App, Entity) {
    let mut app = App::new();
    app.add_plugins((SchedulePlugin, RewardPlugin));
    let entity = app.world_mut().spawn((EnvId { index: 0 }, components)).id();
    app.world_mut().run_schedule(schedule);
    (app, entity)
}

/// An env starts every episode like a fresh one.
#[test]
fn a_round_starts_without_a_past() {
    let mut state = RewardState::default();
    let [before, now] = [2, 3].map(|step| seed(SeedStage::Training, step));
    let inputs = Step::new(3).committed(50.0).slot(before, now);
    let breakdown = pay(&RewardConfig::default(), &inputs.build(), &mut state);
    assert_ne!(state, RewardState::default());

    let (app, entity) = after(RoundStart, (state, StepReward(Some(breakdown))));

    let env = app.world().entity(entity);
    assert_eq!(env.get::<RewardState>(), Some(&RewardState::default()));
    assert_eq!(env.get::<StepReward>(), Some(&StepReward::default()));
}

/// The network is another than the one that was paid for.
#[test]
fn a_rollback_makes_the_reward_forget_what_it_has_paid_for() {
    let mut state = RewardState::default();
    let inputs = Step::new(3).committed(50.0).kept(60.0);
    pay(&RewardConfig::default(), &inputs.build(), &mut state);
    assert_eq!(state.committed_accuracy, Some(50.0));
    let alarm = Alarm {
        kind: AlarmKind::NonFinite,
        loss: f64::NAN,
        consecutive: 0,
    };
    let rollback = Rollback {
        alarm,
        blamed: true,
        raw_penalty: -10.0,
        snapshot_step: 2,
        steps_lost: 2,
        pruned: smallvec::smallvec![1],
        is_charged: false,
    };

    let (app, entity) = after(Assess, (state, RollbackVerdict(Some(rollback))));

    let state = app.world().get::<RewardState>(entity).unwrap();
    assert_eq!((state.committed_accuracy, state.lent), (None, 0.0));
}
