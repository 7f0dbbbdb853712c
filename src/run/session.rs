//! One run from the command line to its last word: plugins, driver, summary, exit (spec 07 §22).

use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;

use bevy_app::App;

use super::announce::{RunFolder, RunRequest};
use super::{
    Extension, ExtensionError, Keeper, Labels, LogFile, NO_EXTENSION, ResumePoint, StatusSink, StopRequest, StopSignal,
    drive, runs_root, summary,
};
use crate::SimicPlugins;
use crate::env::Experiment;
use crate::growth::SlotId;
use crate::health::EngineError;
use crate::host::{LayoutError, SlotLayout, injection_specs};
use crate::scenario::{Loaded, Scenario, TaskSpec, resolved_ron};
use crate::telemetry::sinks::{Console, ConsoleSink, JsonLinesSink, TensorBoardSink};
use crate::telemetry::{RunEnd, RunFinished, RunState, ShutdownReport, Sinks, TelemetryHub};
use crate::validation::max_configurations;

/// Everything that a run is made from.
#[derive(Clone, Debug)]
pub struct RunPlan {
    pub scenario: Scenario,
    pub task: TaskSpec,
    pub slots: Vec<SlotId>,
    /// The scenario file, verbatim.
    pub source: String,
    pub path: Option<PathBuf>,
    pub out: Option<PathBuf>,
    pub threads: usize,
    pub console: Console,
    pub log: LogFile,
    pub labels: Labels,
    /// What the application adds to the engine.
    pub extend: Extension,
    /// Through which the run is asked to stop.
    pub stop: StopSignal,
    /// `None`: the run begins.
    pub resume: Option<ResumePoint>,
}

impl RunPlan {
    /// A silent run of the engine as it is, on all cores, in the default folder.
    pub fn new(loaded: Loaded, source: impl Into<String>) -> Self {
        Self {
            scenario: loaded.scenario,
            task: loaded.task,
            slots: loaded.slots,
            source: source.into(),
            path: None,
            out: None,
            threads: available_parallelism().map_or(1, NonZero::get),
            console: Console::silent(),
            log: LogFile::default(),
            labels: Labels::default(),
            extend: NO_EXTENSION,
            stop: StopSignal::default(),
            resume: None,
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct RunReport {
    /// `None` if the run never began: nothing was written.
    pub record: Option<RunRecord>,
    pub failure: Option<EngineError>,
    /// Who ended the run before its end.
    pub stopped_by: Option<StopRequest>,
    /// Durable sinks that lost something, and `checkpoint` if the newest one is missing.
    pub failed_durable: Vec<String>,
}

/// What a run left behind.
#[derive(Clone, Debug)]
pub struct RunRecord {
    pub run_id: String,
    pub directory: PathBuf,
    pub finished: Option<RunFinished>,
    /// What to print at the end.
    pub summary: String,
}

/// Resolves a plan into what the engine plays.
///
/// # Errors
/// Slots that the host lacks, or a host that cannot be: scenario validation has excluded both.
pub fn experiment(plan: &RunPlan) -> Result<Experiment, LayoutError> {
    let specs = injection_specs(&plan.task.host).unwrap_or_default();
    let layout = SlotLayout::new(&specs, &plan.slots)?;
    Ok(Experiment {
        max_configurations: max_configurations(&plan.scenario.attribution, layout.len()),
        folder: plan.path.as_ref().and_then(|path| Some(path.parent()?.to_path_buf())),
        threads: plan.threads,
        envs: (0..plan.scenario.run.n_envs).collect(),
        rounds: plan.resume.as_ref().map_or(0, |point| point.progress.next_round)..plan.scenario.run.rounds,
        scenario: plan.scenario.clone(),
        task: plan.task.clone(),
        layout,
    })
}

/// Plays `plan` and records it.
///
/// # Errors
/// A plan that cannot be resolved, or an extension that cannot be added; everything later is in the report.
pub fn run(plan: &RunPlan) -> Result<RunReport, ExtensionError> {
    let mut app = App::new();
    app.add_plugins(SimicPlugins::recorded(&plan.scenario.telemetry));
    app.insert_resource(experiment(plan)?);
    app.insert_resource(RunRequest {
        root: runs_root(plan.out.as_deref()),
        scenario_path: plan.path.clone(),
        source: plan.source.clone(),
        resolved: resolved_ron(&plan.scenario)?,
        extend: plan.extend,
        labels: plan.labels.clone(),
        log: plan.log.clone(),
        resume: plan.resume.clone(),
    });
    app.insert_resource(plan.stop.clone());
    (plan.extend)(&mut app)?;
    let mut sinks = app.world_mut().resource_mut::<Sinks>();
    sinks.add(JsonLinesSink::default());
    sinks.add(StatusSink::default());
    sinks.add(ConsoleSink::new(plan.console.clone()));
    if let Some(curves) = TensorBoardSink::new(plan.scenario.telemetry.tensorboard) {
        sinks.add(curves);
    }
    let failure = drive(&mut app).err();
    Ok(finish(&mut app, failure))
}

/// Closes the record and says what there is to say.
fn finish(app: &mut App, failure: Option<EngineError>) -> RunReport {
    let world = app.world_mut();
    let missing_checkpoint = world.get_resource::<Keeper>().and_then(Keeper::failure).is_some();
    let stopped_by = world.get_resource::<StopSignal>().and_then(StopSignal::requested);
    let directory = world.get_resource::<RunFolder>().map(|folder| folder.0.clone());
    let (Some(directory), Some(mut hub)) = (directory, world.get_resource_mut::<TelemetryHub>()) else {
        return RunReport {
            record: None,
            failure,
            stopped_by: None,
            failed_durable: Vec::new(),
        };
    };
    let status = match (&failure, stopped_by) {
        (Some(_), _) => RunState::Failed,
        (None, Some(_)) => RunState::Interrupted,
        (None, None) => RunState::Completed,
    };
    let ShutdownReport { mut failed_durable, .. } = hub.finish(RunEnd {
        status,
        error: failure.as_ref().map(ToString::to_string),
    });
    if missing_checkpoint {
        failed_durable.push("checkpoint".into());
    }
    RunReport {
        record: Some(RunRecord {
            run_id: directory.run_id().into(),
            directory: directory.path().to_path_buf(),
            finished: hub.live().finished.clone(),
            summary: summary(hub.live(), directory.path()),
        }),
        failure,
        stopped_by,
        failed_durable,
    }
}
