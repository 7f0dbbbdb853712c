//! The front door: an engine of all plugins, made from a scenario and played, in memory or recorded.

pub(crate) mod control;
mod memory;
mod plugins;
mod catalog;
mod extension;
mod prepared;
mod builder;
mod report;

use std::ops::ControlFlow;
use std::path::Path;

use bevy_app::App;
use bevy_ecs::prelude::World;

pub use builder::{EngineBuilder, all_cores};
pub use catalog::built_in_names;
pub use extension::{Extension, Names};
pub use memory::MemoryEstimate;
pub use plugins::SimicPlugins;
pub use prepared::{LARGEST_TEXT, Prepared, SetupError, read_scenario, read_text};
pub use report::{RunRecord, RunReport};

use crate::health::EngineError;
use crate::run::{Driver, DriverStep};
use crate::torch::FreeThreadBuffers;

/// A run that can be played: an [`App`] of all plugins with an [`Experiment`](crate::env::Experiment) in it.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use simic_engine::prelude::*;
///
/// let mut engine = Engine::from_ron(
///     r#"(
///         task: preset("digits_minimal", (batches_per_step: count(1))),
///         run: (rounds: 1, n_envs: 1, max_steps: 2),
///         policy: (controller: "wait"),
///     )"#,
/// )?;
/// while engine.step()? {
///     println!("step {}", engine.world().resource::<RunClock>().step());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine {
    app: App,
    driver: Driver,
    /// Dropped after the app.
    _buffers: FreeThreadBuffers,
}

impl Engine {
    /// Settings in addition to the scenario: plugins, overrides, threads, a record.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// An engine in memory for a scenario text.
    ///
    /// # Errors
    /// Every problem in the scenario.
    pub fn from_ron(text: &str) -> Result<Self, SetupError> {
        Self::builder().from_ron(text)
    }

    /// An engine in memory for a scenario file.
    ///
    /// # Errors
    /// A file that can't be read, or every problem in the scenario.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SetupError> {
        Self::builder().load(path)
    }

    /// Plays one step of every env, and the phases before it. Returns false if the run was over, which closes its record.
    ///
    /// # Errors
    /// The first failure of a system, after `Shutdown` has run.
    pub fn step(&mut self) -> Result<bool, EngineError> {
        loop {
            match self.advance() {
                ControlFlow::Continue(DriverStep::StepPlayed) => return Ok(true),
                ControlFlow::Continue(_) => {}
                ControlFlow::Break(report) => return report.into_result().map(|_| false),
            }
        }
    }

    /// Makes the next move of the loop, for those who play several engines side by side. Breaks with the end of the run,
    /// which closes its record.
    pub fn advance(&mut self) -> ControlFlow<RunReport, DriverStep> {
        let failure = match self.driver.advance(&mut self.app) {
            Ok(DriverStep::Over) => None,
            Ok(moment) => return ControlFlow::Continue(moment),
            Err(failure) => Some(failure),
        };
        ControlFlow::Break(report::finish(&mut self.app, failure))
    }

    /// Plays what is left of the run and closes its record.
    ///
    /// # Errors
    /// The first failure of a system, after `Shutdown` has run.
    pub fn run(&mut self) -> Result<RunReport, EngineError> {
        self.play().into_result()
    }

    /// As [`Self::run`], for those who want the record of a run that failed.
    pub fn play(&mut self) -> RunReport {
        loop {
            if let ControlFlow::Break(report) = self.advance() {
                return report;
            }
        }
    }

    /// Entities and resources.
    pub fn world(&self) -> &World {
        self.app.world()
    }

    /// Entities and resources, to change.
    pub fn world_mut(&mut self) -> &mut World {
        self.app.world_mut()
    }

    /// The app, to add systems to before the first step.
    pub fn app_mut(&mut self) -> &mut App {
        &mut self.app
    }
}
