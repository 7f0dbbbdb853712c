//! A run in memory, as a program on the library makes it.

use bevy_app::App;
use simic_engine::prelude::*;
use simic_engine::run::{RunPlan, experiment};
use simic_engine::scenario::{self, Catalog, Input};

/// The engine with the scenario of `text`, not yet started; `controller` may be one that only the test registers.
pub fn engine(text: &str, controller: Option<&str>) -> App {
    let input = Input {
        label: "test",
        text,
        overrides: &[],
    };
    let mut loaded = scenario::load(&input, &Catalog::default()).expect("the scenario is valid");
    if let Some(name) = controller {
        loaded.scenario.policy.controller = name.into();
    }
    let mut plan = RunPlan::new(loaded, text);
    plan.threads = 2;
    let mut app = App::new();
    app.add_plugins(SimicPlugins::unrecorded())
        .insert_resource(experiment(&plan).expect("the slots exist"));
    app
}
