//! What an engine consists of: its plugins, for manifests and `list plugins`.

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use serde::Serialize;

use super::{CheckpointPlugin, Extension, ExtensionError, RecordPlugin, StartupPlugin};
use crate::SimicPlugins;
use crate::controller::ControllerPlugin;
use crate::env::EnvPlugin;
use crate::faults::FaultPlugin;
use crate::governor::GovernorPlugin;
use crate::learner::LearnerPlugin;
use crate::reward::RewardPlugin;
use crate::scenario::TelemetryConfig;
use crate::schedule::SchedulePlugin;
use crate::telemetry::TelemetryPlugin;
use crate::training::TrainingPlugin;
use crate::validation::ValidationPlugin;

/// A part of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PluginInfo {
    pub name: String,
    pub version: String,
    pub summary: String,
}

/// The plugins of an app. The engine's are found; others add themselves when they are built:
///
/// ```
/// # use bevy_app::{App, Plugin};
/// use simic_engine::run::Inventory;
///
/// struct FrostPlugin;
///
/// impl Plugin for FrostPlugin {
///     fn build(&self, app: &mut App) {
///         let mut inventory = app.world_mut().get_resource_or_init::<Inventory>();
///         inventory.add("frost", env!("CARGO_PKG_VERSION"), "stops the growth of seeds in winter");
///     }
/// }
/// ```
#[derive(Resource, Clone, Debug, Default)]
pub struct Inventory(Vec<PluginInfo>);

impl Inventory {
    pub fn add(&mut self, name: impl Into<String>, version: impl Into<String>, summary: impl Into<String>) {
        self.0.push(PluginInfo {
            name: name.into(),
            version: version.into(),
            summary: summary.into(),
        });
    }

    /// The engine's first, in the order of its group.
    pub fn plugins(&self) -> &[PluginInfo] {
        &self.0
    }
}

/// Takes stock of the engine's plugins: the last of its group.
pub struct InventoryPlugin;

impl Plugin for InventoryPlugin {
    fn build(&self, app: &mut App) {
        let present: Vec<_> = engine_plugins()
            .into_iter()
            .filter(|(is_added, ..)| is_added(app))
            .collect();
        let mut inventory = app.world_mut().get_resource_or_init::<Inventory>();
        for (_, name, summary) in present {
            inventory.add(name, env!("CARGO_PKG_VERSION"), summary);
        }
    }
}

type IsAdded = fn(&App) -> bool;

fn engine_plugins() -> [(IsAdded, &'static str, &'static str); 13] {
    [
        (
            App::is_plugin_added::<SchedulePlugin>,
            "SchedulePlugin",
            "schedules and sets in order",
        ),
        (
            App::is_plugin_added::<TelemetryPlugin>,
            "TelemetryPlugin",
            "events and their sinks",
        ),
        (
            App::is_plugin_added::<StartupPlugin>,
            "StartupPlugin",
            "backend, devices, data",
        ),
        (
            App::is_plugin_added::<EnvPlugin>,
            "EnvPlugin",
            "env entities and their episodes",
        ),
        (
            App::is_plugin_added::<TrainingPlugin>,
            "TrainingPlugin",
            "train steps of hosts and seeds",
        ),
        (
            App::is_plugin_added::<ValidationPlugin>,
            "ValidationPlugin",
            "the coalition pass and what seeds contribute",
        ),
        (
            App::is_plugin_added::<GovernorPlugin>,
            "GovernorPlugin",
            "a watchdog per env: alarms, snapshots, rollbacks, vetoes",
        ),
        (
            App::is_plugin_added::<FaultPlugin>,
            "FaultPlugin",
            "damage on purpose, as the scenario asks for",
        ),
        (
            App::is_plugin_added::<ControllerPlugin>,
            "ControllerPlugin",
            "observations, masks, decisions and their execution",
        ),
        (
            App::is_plugin_added::<RewardPlugin>,
            "RewardPlugin",
            "what a decision is paid",
        ),
        (
            App::is_plugin_added::<LearnerPlugin>,
            "LearnerPlugin",
            "rollouts and updates of the policy",
        ),
        (
            App::is_plugin_added::<RecordPlugin>,
            "RecordPlugin",
            "the run directory and what is told of a run",
        ),
        (
            App::is_plugin_added::<CheckpointPlugin>,
            "CheckpointPlugin",
            "checkpoints and resumed runs",
        ),
    ]
}

/// The plugins of a recorded run in an engine with this extension.
///
/// # Errors
/// The extension's own.
pub fn plugins(extend: Extension) -> Result<Vec<PluginInfo>, ExtensionError> {
    let mut app = App::new();
    app.add_plugins(SimicPlugins::recorded(&TelemetryConfig::default()));
    extend(&mut app)?;
    Ok(app.world().get_resource::<Inventory>().cloned().unwrap_or_default().0)
}

#[cfg(test)]
mod tests {
    use bevy_app::PluginGroup;

    use super::*;

    fn names(app: &App) -> Vec<&str> {
        let plugins = app.world().resource::<Inventory>().plugins();
        plugins.iter().map(|plugin| plugin.name.as_str()).collect()
    }

    #[test]
    fn the_inventory_holds_what_is_in_the_app_and_nothing_else() {
        let mut app = App::new();
        app.add_plugins(SimicPlugins::unrecorded().build().disable::<GovernorPlugin>());
        let mut inventory = app.world_mut().resource_mut::<Inventory>();
        inventory.add("frost", "0.3.0", "stops the growth of seeds in winter");

        let names = names(&app);

        assert_eq!(names.len(), 11, "of 13 two only record, one is disabled, one is new");
        assert!(names.contains(&"LearnerPlugin"));
        assert!(!names.contains(&"GovernorPlugin"));
        assert_eq!(names.last(), Some(&"frost"));
    }

    #[test]
    fn every_plugin_of_a_recorded_run_is_known() {
        assert_eq!(
            plugins(super::super::NO_EXTENSION).unwrap().len(),
            engine_plugins().len()
        );
    }
}
