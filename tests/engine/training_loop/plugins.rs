//! The engine is a group of plugins: their systems never leave an order to chance, and a plugin that is missing is named.

use bevy_app::{PluginGroup, PluginGroupBuilder};
use simic_engine::internals::controller::ControllerPlugin;
use simic_engine::internals::env::EnvPlugin;
use simic_engine::internals::health::EngineError;
use simic_engine::internals::record::RecordPlugin;
use simic_engine::internals::run::{Driver, DriverStep, MissingPart, StartupPlugin};
use simic_engine::internals::schedule::all_schedules;
use simic_engine::internals::telemetry::TelemetryPlugin;
use simic_engine::internals::training::TrainingPlugin;
use simic_engine::internals::validation::ValidationPlugin;

use simic_engine::prelude::*;

use super::support::*;

/// An engine of these plugins, with an experiment to play.
fn engine(plugins: PluginGroupBuilder) -> App {
    let mut app = App::new();
    let tiny = Engine::from_ron(&scenario(MINIMAL, 1, 2, WAIT)).expect("the scenario is sound");
    let experiment = tiny.world().resource::<Experiment>().clone();
    app.add_plugins(plugins).insert_resource(experiment);
    app
}

fn drive(app: &mut App) -> Result<(), EngineError> {
    let mut driver = Driver::default();
    while driver.advance(app)? != DriverStep::Over {}
    Ok(())
}

fn recorded() -> PluginGroupBuilder {
    SimicPlugins::recorded(false).build()
}

fn unrecorded() -> PluginGroupBuilder {
    SimicPlugins::unrecorded().build()
}

/// Ambiguous orders are errors of the build.
#[test]
fn all_schedules_of_all_plugins_build_without_ambiguity() {
    for plugins in [recorded(), unrecorded()] {
        let mut app = engine(plugins);
        let world = app.world_mut();
        for label in all_schedules() {
            let systems = world.schedule_scope(label, |world, schedule| {
                if let Err(error) = schedule.initialize(world) {
                    panic!("{label:?}: {}", error.to_string(schedule.graph(), world));
                }
                schedule.systems_len()
            });
            // A run without a record ends and waits without any.
            let may_be_empty = ["Shutdown", "Paused"].contains(&format!("{label:?}").as_str());
            assert!(systems > 0 || may_be_empty, "{label:?} is empty");
        }
    }
}

#[test]
fn a_system_whose_order_is_left_open_is_refused_with_the_systems_it_conflicts_with() {
    fn meddle(_: Query<&mut ValMetrics>) {}
    let mut app = engine(unrecorded());
    app.add_systems(Assess, meddle);

    let message = drive(&mut app).expect_err("the order matters").to_string();

    let schedule = "start-up failed: schedule Assess cannot be built";
    for part in [schedule, "meddle", "derive_val_metrics"] {
        assert!(message.contains(part), "{message}");
    }
}

/// The engine without `P`: what is missing, if anything is.
fn without<P: Plugin>(plugins: PluginGroupBuilder) -> Option<MissingPart> {
    let error = drive(&mut engine(plugins.disable::<P>())).err()?;
    let cause = error.failure.cause::<MissingPart>();
    Some(cause.unwrap_or_else(|| panic!("{error}")).clone())
}

#[test]
fn an_engine_without_one_of_its_plugins_says_which_is_missing() {
    let work = |plugin, work| Some(MissingPart::Work { plugin, work });
    let provider = |plugin, resource| Some(MissingPart::Plugin { plugin, resource });
    for group in [unrecorded, recorded] {
        let found = [
            without::<SchedulePlugin>(group()),
            without::<TelemetryPlugin>(group()),
            without::<StartupPlugin>(group()),
            without::<EnvPlugin>(group()),
            without::<TrainingPlugin>(group()),
            without::<ValidationPlugin>(group()),
            without::<ControllerPlugin>(group()),
        ];
        let expected = [
            provider("SchedulePlugin", "RunHealth"),
            provider("TelemetryPlugin", "TelemetryOutbox"),
            work("StartupPlugin", Work::LoadDatasets),
            work("EnvPlugin", Work::SpawnEnvs),
            work("TrainingPlugin", Work::TrainBatches),
            work("ValidationPlugin", Work::ValidateBatches),
            work("ControllerPlugin", Work::Decide),
        ];
        assert_eq!(found, expected);
    }
    let part = work("TrainingPlugin", Work::TrainBatches).expect("a part");
    assert_eq!(
        part.to_string(),
        "the app has no `TrainingPlugin`: add it (it is in `SimicPlugins`), or do its work in systems of your own, among \
         them one in `Work::TrainBatches`"
    );
    // An engine without its record runs.
    assert_eq!(without::<RecordPlugin>(recorded()), None);
}

#[test]
fn an_engine_without_anything_to_play_says_what_to_insert() {
    let mut nothing_to_play = App::new();
    nothing_to_play.add_plugins(SimicPlugins::unrecorded());
    let mut nowhere_to_record = engine(recorded());

    let complaint = |app: &mut App| drive(app).expect_err("something is missing").to_string();

    assert_eq!(
        complaint(&mut nothing_to_play),
        "start-up failed: the app has no `Experiment`: insert one, or create the app with `Engine`"
    );
    assert_eq!(
        complaint(&mut nowhere_to_record),
        "start-up failed: the app has no `Recording`: insert one, or use `SimicPlugins::unrecorded()`"
    );
}
