//! One run from the command line to its last word: plugins, driver, summary, exit (spec 07 §22).

use std::path::PathBuf;

use bevy_app::App;

use super::announce::{RunFolder, RunRequest};
use super::{StatusSink, drive, runs_root, summary};
use crate::SimicPlugins;
use crate::env::Experiment;
use crate::health::EngineError;
use crate::host::{LayoutError, SlotLayout, injection_specs};
use crate::scenario::{Scenario, TaskSpec, resolved_ron};
use crate::seed::SlotId;
use crate::telemetry::sinks::{ColorChoice, ConsoleSink, JsonLinesSink, ProgressStyle};
use crate::telemetry::{RunEnd, RunState, ShutdownReport, Sinks, TelemetryHub};
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
    pub progress: ProgressStyle,
    pub color: ColorChoice,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunReport {
    /// What to print at the end; `None` if the run never began.
    pub summary: Option<String>,
    pub failure: Option<EngineError>,
    /// Durable sinks that lost something.
    pub failed_durable: Vec<String>,
    /// Whether the failure came before anything was written.
    pub began: bool,
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
        rounds: 0..plan.scenario.run.rounds,
        scenario: plan.scenario.clone(),
        task: plan.task.clone(),
        layout,
    })
}

/// Plays `plan` and records it.
///
/// # Errors
/// A plan that cannot be resolved; everything later is in the report.
pub fn run(plan: &RunPlan) -> Result<RunReport, Box<dyn std::error::Error>> {
    let mut app = App::new();
    app.add_plugins(SimicPlugins::recorded(&plan.scenario.telemetry));
    app.insert_resource(experiment(plan)?);
    app.insert_resource(RunRequest {
        root: runs_root(plan.out.as_deref()),
        scenario_path: plan.path.clone(),
        source: plan.source.clone(),
        resolved: resolved_ron(&plan.scenario)?,
    });
    let mut sinks = app.world_mut().resource_mut::<Sinks>();
    sinks.add(JsonLinesSink::default());
    sinks.add(StatusSink::default());
    sinks.add(ConsoleSink::new(plan.progress, plan.color));
    let failure = drive(&mut app).err();
    Ok(finish(&mut app, failure))
}

/// Closes the record and says what there is to say.
fn finish(app: &mut App, failure: Option<EngineError>) -> RunReport {
    let world = app.world_mut();
    let folder = world
        .get_resource::<RunFolder>()
        .map(|folder| folder.0.path().to_path_buf());
    let (Some(folder), Some(mut hub)) = (folder, world.get_resource_mut::<TelemetryHub>()) else {
        return RunReport {
            summary: None,
            failure,
            failed_durable: Vec::new(),
            began: false,
        };
    };
    let status = if failure.is_some() {
        RunState::Failed
    } else {
        RunState::Completed
    };
    let ShutdownReport { failed_durable, .. } = hub.finish(RunEnd {
        status,
        error: failure.as_ref().map(ToString::to_string),
    });
    RunReport {
        summary: Some(summary(hub.live(), &folder)),
        failure,
        failed_durable,
        began: true,
    }
}
