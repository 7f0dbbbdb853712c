//! The beginning and the end of a run's record: its directory and manifest, and the host that never grew.

use std::fs::File;
use std::path::PathBuf;

use bevy_app::App;
use bevy_ecs::prelude::*;

use super::resume::ResumePoint;
use super::{
    DeviceInfo, Extension, Inventory, Labels, Libraries, LogFile, Manifest, MissingPart, Resolved, RunDirectory,
    StopSignal, drive,
};
use crate::SimicPlugins;
use crate::clock::RunClock;
use crate::controller::ActiveController;
use crate::env::{Backend, Devices, EnvId, EnvPool, EpisodeStats, Experiment, HostParams, LoadedData, ValMetrics};
use crate::health::{EngineError, Failure, Position, RunHealth};
use crate::learner::{Horizon, PolicyLearner};
use crate::scenario::{InitialTopology, OptimizerConfig, Scenario, TelemetryLevel};
use crate::telemetry::{
    BaselineMeasured, BigInteger, DatasetInfo, EntropyAnneal, Event, LearnerSchedules, LearnerSetup, Num, RunStarted,
    Sinks, TaskKind, TelemetryHub, TelemetryOutbox,
};
use crate::training::TrainingPrecision;
use crate::validation::TestResult;

/// What the run directory records of how the run was asked for.
#[derive(Resource, Clone, Debug)]
pub struct RunRequest {
    /// Folder in which the run's own is made.
    pub root: PathBuf,
    pub scenario_path: Option<PathBuf>,
    /// The scenario file, verbatim.
    pub source: String,
    /// The scenario with every default and override.
    pub resolved: String,
    /// What the application adds to the engine.
    pub extend: Extension,
    pub labels: Labels,
    pub log: LogFile,
    /// `None`: the run begins.
    pub resume: Option<ResumePoint>,
}

/// Where the run is recorded, once it has begun.
#[derive(Resource, Clone, Debug)]
pub struct RunFolder(pub RunDirectory);

/// Keeps other processes from the run directory for as long as it lives.
#[derive(Resource, Debug)]
pub struct RunClaim {
    _lock: File,
}

/// Creates the run directory or takes up the one that is resumed, starts the sinks and tells what is about to be played
/// (spec 06 U8). The first thing that a run writes: everything that can be wrong with a scenario has been found by now.
pub fn announce(world: &mut World) -> Result<(), Failure> {
    let request = world
        .get_resource::<RunRequest>()
        .cloned()
        .ok_or(MissingPart::Resource {
            resource: "RunRequest",
            remedy: "one, or use `SimicPlugins::unrecorded()`",
        })?;
    let scenario = &world.resource::<Experiment>().scenario;
    let directory = match &request.resume {
        None => RunDirectory::create(
            &request.root,
            &scenario.name,
            request.source.as_bytes(),
            &request.resolved,
        )?,
        Some(point) => point.directory.clone(),
    };
    world.insert_resource(RunClaim {
        _lock: directory.claim()?,
    });
    let started = run_started(world, directory.scenario_hash(), request.resume.as_ref());
    let mut info = directory.info();
    match &request.resume {
        None => manifest(world, &request, &directory, &started).write(directory.path())?,
        Some(point) => info.earlier = Some(point.return_to()?),
    }
    request.log.settle_in(directory.path())?;
    tracing::info!(run = directory.run_id(), directory = %directory.path().display(), "a run begins");
    let sinks = world.resource_mut::<Sinks>().take();
    let hub = TelemetryHub::start(&info, sinks)?;
    world.insert_resource(hub);
    world.insert_resource(RunFolder(directory));
    world.resource_scope(|world, mut hub: Mut<TelemetryHub>| {
        let mut outbox = world.resource_mut::<TelemetryOutbox>();
        outbox.extend(request.resume.iter().flat_map(ResumePoint::loaded));
        outbox.push(Event::run(started));
        hub.flush(&mut outbox);
    });
    Ok(())
}

fn manifest(world: &World, request: &RunRequest, directory: &RunDirectory, started: &RunStarted) -> Manifest {
    let experiment = world.resource::<Experiment>();
    let resolved = Resolved {
        amp_dtype: started.amp_dtype.clone(),
        matmul_precision: started.matmul_precision.clone(),
        deterministic: started.deterministic,
    };
    let libraries = Libraries {
        tch: TCH_VERSION.into(),
        libtorch: LIBTORCH_VERSION.into(),
    };
    let dataset = started.dataset.clone();
    let mut manifest = Manifest::new(directory, experiment.scenario.run.seed, libraries, resolved, dataset);
    manifest.scenario_path.clone_from(&request.scenario_path);
    manifest.labels = request.labels.clone();
    manifest.devices = experiment
        .scenario
        .run
        .devices
        .iter()
        .map(|device| DeviceInfo::new(device.to_string()))
        .collect();
    let devices = world.resource::<Devices>();
    manifest.env_devices = experiment.envs.iter().map(|&env| devices.index_of_env(env)).collect();
    let plugins = world.get_resource::<Inventory>().map_or(&[][..], Inventory::plugins);
    manifest.plugins = plugins
        .iter()
        .map(|plugin| (plugin.name.clone(), plugin.version.clone()))
        .collect();
    manifest.threads.env_workers = world.resource::<EnvPool>().threads();
    manifest.threads.intra_op = 1;
    manifest
}

/// The versions that this build links (Cargo.toml pins tch, and tch its libtorch).
const TCH_VERSION: &str = "0.24";
const LIBTORCH_VERSION: &str = "2.11.0";

fn run_started(world: &mut World, scenario_hash: &str, resume: Option<&ResumePoint>) -> RunStarted {
    let host_params = world
        .query::<&HostParams>()
        .iter(world)
        .next()
        .map_or(0, |params| params.0);
    let learner = learner_setup(world);
    let mut controller = world.resource_mut::<ActiveController>();
    let controller_hash = controller.0.get().fingerprint().map(String::from);
    let (experiment, data) = (world.resource::<Experiment>(), world.resource::<LoadedData>());
    let (scenario, task) = (&experiment.scenario, &experiment.task);
    let precision = world.resource::<TrainingPrecision>().0;
    RunStarted {
        scenario: scenario.name.clone(),
        scenario_hash: scenario_hash.into(),
        task: task.name.clone(),
        task_kind: TaskKind::Classification,
        controller: scenario.policy.controller.clone(),
        controller_hash,
        reward_family: scenario.reward.name().into(),
        reward_mode: scenario.reward.mode().into(),
        n_envs: scenario.run.n_envs as u32,
        n_rounds: scenario.run.rounds,
        max_steps: task.max_steps,
        n_episodes: u64::from(scenario.run.rounds) * scenario.run.n_envs as u64,
        slots: experiment.layout.slots().iter().map(|spec| spec.slot).collect(),
        max_seeds: (task.max_seeds > 0).then_some(task.max_seeds),
        host_params,
        lr_host: Some(Num(match task.host_opt {
            OptimizerConfig::Sgd { lr, .. } | OptimizerConfig::Adamw { lr, .. } => lr,
        })),
        max_grad_norm_host: task.max_grad_norm.map(Num),
        learner,
        seed: BigInteger(scenario.run.seed),
        env_devices: scenario.run.devices.iter().map(ToString::to_string).collect(),
        amp_enabled: precision.is_some(),
        amp_dtype: precision.map(|_| "bf16".into()),
        matmul_precision: scenario.run.matmul_precision.name().into(),
        deterministic: scenario.run.deterministic,
        dataset: DatasetInfo {
            name: data.set.name.clone(),
            train_n: data.set.train.len() as u64,
            val_n: data.set.val.len() as u64,
            test_n: Some(data.set.test.len() as u64),
            hash: data.set.hash.clone(),
        },
        start_round: experiment.rounds.start,
        resumed_from: resume.map(ResumePoint::relative_path),
        fallbacks: world.resource::<Backend>().fallbacks.clone(),
    }
}

/// `None` if the run's controller does not learn.
fn learner_setup(world: &mut World) -> Option<LearnerSetup> {
    if !world.contains_resource::<PolicyLearner>() {
        return None;
    }
    let (policy_params, lstm_hidden) = {
        let mut controller = world.get_resource_mut::<ActiveController>()?;
        let net = controller.0.get().learned()?.net();
        (net.params().count(), net.spec().config.hidden_dim)
    };
    let Scenario { run, learner, .. } = &world.resource::<Experiment>().scenario;
    let horizon = Horizon {
        total_updates: learner.planned_updates(run.rounds),
        envs: run.n_envs,
    };
    let (start, end) = learner.entropy_coefs();
    let episodes = learner.entropy_anneal_episodes;
    Some(LearnerSetup {
        policy_params: policy_params as u64,
        policy_device: run.devices.first().map(ToString::to_string).unwrap_or_default(),
        lstm_hidden: lstm_hidden as u32,
        lr: Num(learner.lr),
        clip_ratio: Num(learner.clip_ratio),
        gamma: Num(learner.gamma),
        gae_lambda: Num(learner.gae_lambda),
        entropy_coef: Num(LearnerSchedules::at(0, learner, horizon).entropy_coef),
        entropy_anneal: (episodes > 0).then(|| EntropyAnneal {
            start: Num(start),
            end: Num(end),
            rounds: episodes.div_ceil(run.n_envs.max(1) as u32),
        }),
        value_coef: Num(learner.value_coef),
        max_grad_norm_policy: learner.max_grad_norm.map(Num),
        update_epochs: learner.epochs,
    })
}

/// Plays the best env's best episode again with a controller that only waits: the same host, data and order, never
/// grown. A configuration of the same loop, without a record of its own.
pub fn measure_control(world: &mut World) {
    let stop = world.resource::<StopSignal>().clone();
    let has_stopped = world.resource::<RunHealth>().failure.is_some() || stop.is_requested();
    if has_stopped || !world.contains_resource::<TelemetryHub>() {
        return;
    }
    let Some(best) = world.resource::<TelemetryHub>().live().best_episode else {
        return;
    };
    let mut experiment = world.resource::<Experiment>().clone();
    experiment.scenario.policy.controller = "wait".into();
    experiment.scenario.initial_topology = InitialTopology::Empty;
    experiment.scenario.telemetry.level = TelemetryLevel::Off;
    experiment.scenario.faults.clear();
    experiment.envs = vec![best.env as usize];
    experiment.rounds = best.round..best.round + 1;
    match play_control(experiment, world.resource::<RunRequest>().extend, &stop) {
        // A part of an episode is no measurement.
        _ if stop.is_requested() => {}
        Ok(baseline) => world.resource_scope(|world, mut hub: Mut<TelemetryHub>| {
            let mut outbox = world.resource_mut::<TelemetryOutbox>();
            outbox.push(Event::run(baseline));
            hub.flush(&mut outbox);
        }),
        Err(error) => tracing::warn!("the host that never grew could not be measured: {error}"),
    }
}

fn play_control(experiment: Experiment, extend: Extension, stop: &StopSignal) -> Result<BaselineMeasured, EngineError> {
    let failed = |failure: Failure| failure.during("control", Position::default());
    let mut app = App::new();
    app.add_plugins(SimicPlugins::unrecorded())
        .insert_resource(experiment)
        .insert_resource(stop.clone());
    extend(&mut app).map_err(|error| failed(Failure::message(error.to_string())))?;
    drive(&mut app)?;
    let world = app.world_mut();
    let steps = world.resource::<RunClock>().length().max_steps;
    let mut envs = world.query_filtered::<(&ValMetrics, &EpisodeStats, &TestResult, &HostParams), With<EnvId>>();
    let (val, stats, test, params) = envs.single(world).map_err(|error| failed(error.into()))?;
    Ok(BaselineMeasured {
        val_accuracy: Num(val.accuracy_percent),
        val_loss: Num(val.loss),
        best_val_accuracy: Num(stats.best_accuracy_percent),
        test_accuracy: test.0.map(|(accuracy, _)| Num(accuracy)),
        test_loss: test.0.map(|(_, loss)| Num(loss)),
        steps,
        params: params.0,
    })
}
