//! Inputs of an engine in addition to its scenario.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use bevy_app::{App, Plugin, PluginGroup, PluginGroupBuilder, Plugins};

use super::control::measure_control;
use super::extension::refused;
use super::memory::MemoryEstimate;
use super::{Engine, Extension, Prepared, SetupError, SimicPlugins};
use crate::checkpoint::ResumePoint;
use crate::env::Experiment;
use crate::record::{Recording, ScenarioFile, StatusSink};
use crate::run::{Driver, Room};
use crate::scenario::Override;
use crate::schedule::{AddWork, Shutdown, Work};
use crate::seed::BlueprintRegistry;
use crate::telemetry::Sinks;
use crate::torch::{self, FreeThreadBuffers};
use crate::trajectory::CollectorPlugin;

/// Settings of an engine, given before its scenario is read.
///
/// ```no_run
/// # extern crate simic_core as simic_engine;
/// use simic_engine::prelude::*;
///
/// let report = Engine::builder()
///     .set("run.rounds", 3)
///     .threads(2)
///     .recorded("runs")
///     .load("scenarios/quickstart.ron")?
///     .run()?;
/// let results = report.record.and_then(|record| record.results).expect("it was recorded");
/// println!("{:.1} %", results.rounds.last().expect("three rounds").data.accuracy_mean.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct EngineBuilder {
    extension: Extension,
    overrides: Vec<Override>,
    threads: usize,
    recording: Option<Recording>,
    resume: Option<ResumePoint>,
    leave_out: Vec<fn(PluginGroupBuilder) -> PluginGroupBuilder>,
}

impl Default for EngineBuilder {
    fn default() -> Self {
        Self {
            extension: Extension::default(),
            overrides: Vec::new(),
            threads: all_cores(),
            recording: None,
            resume: None,
            leave_out: Vec::new(),
        }
    }
}

impl EngineBuilder {
    /// Adds plugins of the application: see [`Extension`]. Scenarios may use the names that they register.
    pub fn with<M>(mut self, plugins: impl Plugins<M> + Clone + Send + Sync + 'static) -> Self {
        self.extension = self.extension.with(plugins);
        self
    }

    /// Sets one field of the scenario, by its dotted path, as `--set` does.
    pub fn set(mut self, path: &str, value: impl ToString) -> Self {
        self.overrides.push(Override::flag("set", path, value));
        self
    }

    /// Number of worker threads. All cores unless set.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Records the run in a new folder under `root`, silently.
    pub fn recorded(self, root: impl Into<PathBuf>) -> Self {
        self.recording(Recording::under(root))
    }

    /// Records the run.
    pub fn recording(mut self, recording: Recording) -> Self {
        self.recording = Some(recording);
        self
    }

    /// Resumes a recorded run.
    pub fn resumed(mut self, point: ResumePoint) -> Self {
        self.resume = Some(point);
        self
    }

    /// Leaves out a plugin of the engine.
    pub fn without<P: Plugin>(mut self) -> Self {
        self.leave_out.push(PluginGroupBuilder::disable::<P>);
        self
    }

    /// An engine for a scenario text.
    ///
    /// # Errors
    /// Every problem in the scenario, or a plugin that makes an invalid registration.
    pub fn from_ron(self, text: &str) -> Result<Engine, SetupError> {
        let names = self.extension.names()?;
        let prepared = Prepared::from_ron("scenario", text, &self.overrides, &names.catalog)?;
        self.build(&prepared)
    }

    /// An engine for a scenario file.
    ///
    /// # Errors
    /// A file that can't be read, every problem in the scenario, or a plugin that makes an invalid registration.
    pub fn load(self, path: impl AsRef<Path>) -> Result<Engine, SetupError> {
        let names = self.extension.names()?;
        let prepared = Prepared::load(path.as_ref(), &self.overrides, &names.catalog)?;
        self.build(&prepared)
    }

    /// Builds an engine for a scenario that has been checked with its overrides.
    ///
    /// # Errors
    /// A plugin that makes an invalid registration, or a run that doesn't fit into the remaining memory.
    pub fn build(self, prepared: &Prepared) -> Result<Engine, SetupError> {
        let mut experiment = prepared.experiment(self.threads);
        if let Some(point) = &self.resume {
            experiment.rounds.start = point.progress.next_round;
        }
        let threads = self.threads;
        let mut engine = self.build_experiment(experiment)?;
        check_room(&engine, prepared, threads)?;
        engine.world_mut().insert_resource(prepared.file.clone());
        Ok(engine)
    }

    /// An engine for an experiment that was put together by hand.
    ///
    /// # Errors
    /// A plugin that registers what cannot be registered.
    pub fn build_experiment(self, experiment: Experiment) -> Result<Engine, SetupError> {
        let scenario = &experiment.scenario;
        if scenario.run.deterministic && !scenario.cuda_devices().is_empty() {
            // This thread may still be the only one. If it isn't, start-up refuses the run.
            torch::fix_cublas_workspace();
        }
        let plugins = match &self.recording {
            Some(_) => SimicPlugins::recorded(scenario.run.trajectories),
            None => SimicPlugins::unrecorded(),
        };
        let leave_out = self.leave_out.iter();
        let mut app = App::new();
        app.add_plugins(leave_out.fold(plugins.build(), |plugins, disable| disable(plugins)));
        if experiment.scenario.learner.kept_rollouts().is_some() {
            CollectorPlugin::ensure(&mut app);
        }
        app.insert_resource(experiment);
        app.add_plugins(self.extension);
        refused(app.world())?;
        if let Some(recording) = self.recording {
            app.add_work(Shutdown, Work::MeasureControl, measure_control);
            if let Some(mut sinks) = app.world_mut().get_resource_mut::<Sinks>() {
                sinks.add(StatusSink::default());
            }
            app.insert_resource(recording).init_resource::<ScenarioFile>();
        }
        if let Some(point) = self.resume {
            app.insert_resource(point);
        }
        let driver = Driver::default();
        Ok(Engine {
            app,
            driver,
            _buffers: FreeThreadBuffers,
        })
    }
}

/// Checks that the run fits into the machine's free memory, before it allocates any.
fn check_room(engine: &Engine, prepared: &Prepared, threads: usize) -> Result<(), SetupError> {
    let loaded = &prepared.loaded;
    let (Some(room), Some(blueprints)) = (
        Room::now(&loaded.scenario.run),
        engine.world().get_resource::<BlueprintRegistry>(),
    ) else {
        return Ok(());
    };
    MemoryEstimate::check(loaded, blueprints, threads, room).map_err(|shortage| SetupError::Memory {
        label: prepared.label(),
        shortage,
    })
}

/// Threads that this process may run at once.
pub fn all_cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}
