//! The plugins that make up an engine, each with its purpose.

use std::any::type_name;

use bevy_app::{App, Plugin, PluginGroup, PluginGroupBuilder};

use crate::checkpoint::CheckpointPlugin;
use crate::controller::ControllerPlugin;
use crate::env::EnvPlugin;
use crate::faults::FaultPlugin;
use crate::governor::GovernorPlugin;
use crate::keep::KeepPlugin;
use crate::learner::LearnerPlugin;
use crate::record::{RecordPlugin, TrajectoryPlugin};
use crate::reward::RewardPlugin;
use crate::run::{Inventory, StartupPlugin};
use crate::schedule::SchedulePlugin;
use crate::telemetry::TelemetryPlugin;
use crate::training::TrainingPlugin;
use crate::validation::ValidationPlugin;

/// The engine: every subject's plugin. An application can disable or replace any of them.
/// [`Driver::advance`](crate::run::Driver::advance) names the plugin with the missing work.
pub struct SimicPlugins {
    is_recorded: bool,
    trajectories: bool,
}

impl SimicPlugins {
    /// Adds a run directory, sinks and a summary, and the inputs and actions of controllers if `trajectories` is set. It needs
    /// a [`Recording`](crate::record::Recording) and the [`Experiment`](crate::env::Experiment).
    pub const fn recorded(trajectories: bool) -> Self {
        Self {
            is_recorded: true,
            trajectories,
        }
    }

    /// Keeps the run in memory: nothing is written or printed.
    pub const fn unrecorded() -> Self {
        Self {
            is_recorded: false,
            trajectories: false,
        }
    }
}

impl PluginGroup for SimicPlugins {
    fn build(self) -> PluginGroupBuilder {
        let telemetry = TelemetryPlugin {
            is_recorded: self.is_recorded,
        };
        let plugins = Listing::new(PluginGroupBuilder::start::<Self>())
            .add(SchedulePlugin, "schedules and sets in order")
            .add(telemetry, "events and their sinks")
            .add(StartupPlugin, "backend, devices, data")
            .add(EnvPlugin, "env entities and their episodes")
            .add(TrainingPlugin, "train steps of hosts and seeds")
            .add(ValidationPlugin, "the coalition pass and the contributions of seeds")
            .add(
                GovernorPlugin,
                "a watchdog per env: alarms, snapshots, rollbacks, vetoes",
            )
            .add(FaultPlugin, "deliberate damage, from the scenario's faults")
            .add(ControllerPlugin, "observations, masks, decisions and their execution")
            .add(RewardPlugin, "the rewards of decisions")
            .add(LearnerPlugin, "rollouts and updates of the policy")
            .add(KeepPlugin, "the networks that a run keeps");
        let plugins = if self.is_recorded {
            plugins
                .add(RecordPlugin, "the run directory and its events")
                .add(CheckpointPlugin, "checkpoints and resumed runs")
        } else {
            plugins
        };
        let plugins = match self.trajectories {
            true => plugins.add(
                TrajectoryPlugin,
                "inputs and actions of controllers, as data to learn from",
            ),
            false => plugins,
        };
        plugins.group.add(InventoryPlugin(plugins.rows))
    }
}

/// A group of plugins that remembers what they are for.
struct Listing {
    group: PluginGroupBuilder,
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    summary: &'static str,
    is_added: fn(&App) -> bool,
}

impl Listing {
    fn new(group: PluginGroupBuilder) -> Self {
        let rows = Vec::new();
        Self { group, rows }
    }

    fn add<P: Plugin>(mut self, plugin: P, summary: &'static str) -> Self {
        self.rows.push(Row {
            name: type_name::<P>().rsplit("::").next().unwrap_or_default(),
            summary,
            is_added: App::is_plugin_added::<P>,
        });
        let group = self.group.add(plugin);
        Self { group, ..self }
    }
}

/// Lists those plugins of the engine that were not disabled: the last of its group.
struct InventoryPlugin(Vec<Row>);

impl Plugin for InventoryPlugin {
    fn build(&self, app: &mut App) {
        let present: Vec<_> = self.0.iter().filter(|row| (row.is_added)(app)).collect();
        let mut inventory = app.world_mut().get_resource_or_init::<Inventory>();
        for row in present {
            inventory.add(row.name, env!("CARGO_PKG_VERSION"), row.summary);
        }
    }
}

#[cfg(test)]
mod tests;
