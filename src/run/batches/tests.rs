use bevy_app::App;

use super::*;
use crate::schedule::{AddWork, SchedulePlugin};
use crate::training::TrainingPlugin;
use crate::validation::ValidationPlugin;

/// Whether batches are the engine's alone in an app with its plugins and what `change` adds.
fn untouched(change: impl FnOnce(&mut App)) -> bool {
    let mut app = App::new();
    app.add_plugins((SchedulePlugin, TrainingPlugin, ValidationPlugin));
    change(&mut app);
    note_untouched(app.world_mut());
    app.world().resource::<Untouched>().0
}

fn watch() {}

fn never() -> bool {
    false
}

#[test]
fn the_engine_s_own_batches_are_played_in_one_go() {
    assert!(untouched(|_| {}));
    let with_faults = |app: &mut App| {
        app.add_plugins(crate::faults::FaultPlugin);
    };
    assert!(untouched(with_faults));
}

#[test]
fn a_system_of_an_application_in_a_batch_is_heeded_wherever_it_stands() {
    let between = |app: &mut App| {
        app.add_systems(
            TrainBatch,
            watch.after(Work::FetchTrainBatch).before(Work::ForwardBackward),
        );
    };
    let behind = |app: &mut App| {
        app.add_systems(TrainBatch, watch.after(Work::Optimize));
    };
    let in_validation = |app: &mut App| {
        app.add_systems(ValBatch, watch);
    };

    assert!(!untouched(between));
    assert!(!untouched(behind));
    assert!(!untouched(in_validation));
}

#[test]
fn a_condition_on_a_work_or_set_of_the_engine_is_heeded() {
    let on_work = |app: &mut App| {
        app.configure_sets(TrainBatch, Work::Optimize.run_if(never));
    };
    let on_set = |app: &mut App| {
        app.configure_sets(ValBatch, crate::schedule::EngineSet::Validate.run_if(never));
    };

    assert!(!untouched(on_work));
    assert!(!untouched(on_set));
}

#[test]
fn a_work_that_somebody_else_does_is_heeded() {
    let mut app = App::new();
    app.add_plugins((SchedulePlugin, ValidationPlugin));
    app.add_work(TrainBatch, Work::FetchTrainBatch, watch)
        .add_work(TrainBatch, Work::ForwardBackward, watch)
        .add_work(TrainBatch, Work::Optimize, watch);

    note_untouched(app.world_mut());

    assert!(!app.world().resource::<Untouched>().0);
}

#[test]
fn a_system_that_joins_later_is_heeded_as_well() {
    let mut world = World::new();
    let mut schedule = Schedule::new(TrainBatch);
    schedule.add_systems(watch);
    schedule.initialize(&mut world).expect("one system");
    let own = OwnSystems {
        schedule: TrainBatch.intern(),
        names: vec![name_of(&watch)],
    };
    world.add_schedule(schedule);
    assert!(own.are_still_alone(&world));

    world.resource_mut::<Schedules>().add_systems(TrainBatch, || {});

    assert!(!own.are_still_alone(&world));
}
