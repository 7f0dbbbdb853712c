//! An ECS simulation engine for morphogenetic training: neural networks that grow while they train.
//!
//! Start with [`schedule`]: it lists every schedule, every public set and every piece of work in order.

#![deny(unsafe_code)]

// Tests of this crate share code with its examples, which know it by its name.
#[cfg(test)]
extern crate self as simic_engine;

pub mod cli;
pub mod clock;
pub mod compare;
pub mod controller;
pub mod data;
pub mod env;
pub mod faults;
pub mod governor;
pub mod growth;
pub mod health;
pub mod host;
pub mod learner;
pub mod random;
pub mod reward;
pub mod run;
pub mod scenario;
pub mod schedule;
pub(crate) mod schema;
pub mod seed;
pub mod telemetry;
#[allow(unsafe_code)]
pub mod torch;
pub mod training;
pub mod validation;

pub mod prelude;

use bevy_app::{PluginGroup, PluginGroupBuilder};

use scenario::TelemetryConfig;

/// The engine: every subject's plugin. Any of them can be disabled or replaced, as an application's own; [`run::drive`]
/// names the one whose work nobody does.
pub struct SimicPlugins {
    telemetry: TelemetryConfig,
    is_recorded: bool,
}

impl SimicPlugins {
    /// With a run directory, sinks and a summary; needs a [`run::RunRequest`] beside the [`env::Experiment`].
    pub fn recorded(telemetry: &TelemetryConfig) -> Self {
        Self {
            telemetry: *telemetry,
            is_recorded: true,
        }
    }

    /// In memory alone: nothing is written or printed.
    pub fn unrecorded() -> Self {
        let telemetry = TelemetryConfig {
            level: scenario::TelemetryLevel::Off,
            ..TelemetryConfig::default()
        };
        Self {
            telemetry,
            is_recorded: false,
        }
    }
}

impl PluginGroup for SimicPlugins {
    fn build(self) -> PluginGroupBuilder {
        let group = PluginGroupBuilder::start::<Self>()
            .add(schedule::SchedulePlugin)
            .add(telemetry::TelemetryPlugin { config: self.telemetry })
            .add(run::StartupPlugin)
            .add(env::EnvPlugin)
            .add(training::TrainingPlugin)
            .add(validation::ValidationPlugin)
            .add(governor::GovernorPlugin)
            .add(faults::FaultPlugin)
            .add(controller::ControllerPlugin)
            .add(reward::RewardPlugin)
            .add(learner::LearnerPlugin);
        let group = if self.is_recorded {
            group.add(run::RecordPlugin).add(run::CheckpointPlugin)
        } else {
            group
        };
        group.add(run::InventoryPlugin)
    }
}
