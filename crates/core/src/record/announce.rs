//! The beginning of a run's record: its directory and manifest.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bevy_ecs::prelude::*;

use super::{Build, Continuation, LogFile, Manifest, RunDirectory, ScenarioFile};
use crate::controller::ActiveController;
use crate::env::{EnvPool, Experiment, HostParams, LoadedData, SelfTest};
use crate::growth::Topology;
use crate::health::Failure;
use crate::learner::PolicyLearner;
use crate::run::{ChosenResidency, CommandInbox, Inventory, MissingPart};
use crate::scenario::{AnomalyAnswer, DeviceSpec, resolved_ron};
use crate::telemetry::{
    BigInteger, DatasetInfo, DetectorBank, Detectors, Event, RunStarted, Sinks, TaskKind, TelemetryHub,
    TelemetryOutbox, Timestamp,
};
use crate::torch::{gpu, mixed_name};
use crate::training::{TrainingPrecision, with_environment};

/// The way in which a run is recorded.
#[derive(Resource, Clone, Debug)]
pub struct Recording {
    /// Folder in which the run's own is made.
    pub root: PathBuf,
    /// Name of the run's own folder, which does not become the latest then; time, name and hash if `None`.
    pub id: Option<String>,
    /// The place of the log.
    pub log: LogFile,
    /// Words to find the run by.
    pub tags: Vec<String>,
    /// The longest wait of the run for failing storage before it continues without. A checkpoint waits twice as long. This is
    /// longer than a disk is usually full, shorter than people wait.
    pub outage_patience: Duration,
    /// If this file is there, another process plays the run, and this one writes no checkpoint any more.
    pub ends_at: Option<PathBuf>,
    /// `None`: the run begins. Set when a resumed run has been restored.
    pub resume: Option<Continuation>,
}

impl Recording {
    /// A record in a new folder under `root`.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            id: None,
            log: LogFile::default(),
            tags: Vec::new(),
            outage_patience: Duration::from_secs(5),
            ends_at: None,
            resume: None,
        }
    }
}

/// Creates the run directory or takes over the resumed one, starts the sinks and reports the configuration of the run.
/// This is the first thing that a run writes: everything that can be wrong with a scenario has been found by now. What goes wrong
/// here is in the status of the run, whose directory exists from here on. It becomes the latest only once it has
/// begun.
pub fn announce(world: &mut World) -> Result<(), Failure> {
    let recording = world
        .get_resource::<Recording>()
        .cloned()
        .ok_or(MissingPart::Resource {
            resource: "Recording",
            remedy: "one, or use `SimicPlugins::unrecorded()`",
        })?;
    let scenario = &world.resource::<Experiment>().scenario;
    let file = world.get_resource::<ScenarioFile>().cloned().unwrap_or_default();
    let directory = match &recording.resume {
        None => RunDirectory::create(
            &recording.root,
            recording.id.as_deref(),
            &scenario.name,
            file.text.as_bytes(),
            &resolved_ron(scenario)?,
            Timestamp::now(),
        )?,
        Some(point) => point.directory.clone(),
    };
    world.insert_resource(directory.clone());
    begin_record(world, &recording, file, &directory)
        .inspect_err(|failure| directory.note_failure(&failure.to_string()))?;
    if recording.resume.is_none() && recording.id.is_none() {
        directory.become_latest();
    }
    Ok(())
}

fn begin_record(
    world: &mut World,
    recording: &Recording,
    file: ScenarioFile,
    directory: &RunDirectory,
) -> Result<(), Failure> {
    // A run that is resumed was claimed before anything of it was read.
    if recording.resume.is_none() {
        world.insert_resource(directory.claim()?);
    }
    world.insert_resource(CommandInbox::open(directory.path()));
    let mut started = run_started(world, directory.scenario_hash(), recording.resume.as_ref());
    let mut info = directory.info();
    let mut detectors = DetectorBank::new(world.resource::<Detectors>());
    let keeps_trail = world.resource::<Experiment>().scenario.run.on_anomaly > AnomalyAnswer::Note;
    match &recording.resume {
        None => {
            manifest(world, recording, file, directory, &started).write(directory.path())?;
            started.file_hashes = directory.hashes()?;
        }
        Some(point) => info.earlier = Some(point.cut_back(&mut detectors)?),
    }
    recording.log.move_into(directory.path())?;
    tracing::info!(run = directory.run_id(), directory = %directory.path().display(), "a run begins");
    let sinks = world.resource_mut::<Sinks>().take();
    let mut hub = TelemetryHub::start(&info, sinks, recording.outage_patience)?;
    hub.watch(detectors, keeps_trail);
    world.insert_resource(hub);
    world.resource_scope(|world, mut hub: Mut<TelemetryHub>| {
        let mut outbox = world.resource_mut::<TelemetryOutbox>();
        outbox.extend(recording.resume.iter().flat_map(Continuation::loaded));
        let said = with_environment(&[]).unwrap_or_default();
        let message = said.first().map(|said| format!("{}: f32 throughout", said.shown));
        let event = Event::run(started);
        outbox.push(Event { message, ..event });
        hub.flush(&mut outbox);
    });
    Ok(())
}

fn manifest(
    world: &World,
    recording: &Recording,
    file: ScenarioFile,
    directory: &RunDirectory,
    started: &RunStarted,
) -> Manifest {
    let plugins = world.get_resource::<Inventory>().map_or(&[][..], Inventory::plugins);
    let versions = plugins
        .iter()
        .map(|plugin| (plugin.name.clone(), plugin.version.clone()));
    let mut manifest = Manifest::new(directory, started);
    let lossy = |path: PathBuf| path.to_string_lossy().into_owned();
    manifest.scenario_path = file.path.map(lossy);
    manifest.scenario_folder = file.folder.map(lossy);
    manifest.tags.clone_from(&recording.tags);
    manifest.build = world.get_resource().copied().unwrap_or(Build::UNKNOWN);
    manifest.plugins = versions.collect();
    let gpus = world.resource::<Experiment>().scenario.cuda_devices().into_iter();
    let described = |index| Some((DeviceSpec::Cuda(index).to_string(), gpu(index)?));
    manifest.machine.gpus = gpus.filter_map(described).collect();
    manifest.env_workers = world.resource::<EnvPool>().threads();
    manifest
}

fn run_started(world: &mut World, scenario_hash: &str, resume: Option<&Continuation>) -> RunStarted {
    let host_params = world
        .query::<&HostParams>()
        .iter(world)
        .next()
        .map_or(0, |params| params.0);
    let learns = world.contains_resource::<PolicyLearner>();
    let mut controller = world.resource_mut::<ActiveController>();
    let controller = controller.0.get();
    let controller_hash = controller.fingerprint().map(String::from);
    let policy = controller.learned().filter(|_| learns);
    let policy_params = policy.map(|policy| policy.net().params().count());
    let (experiment, data) = (world.resource::<Experiment>(), world.resource::<LoadedData>());
    let (scenario, task) = (&experiment.scenario, &experiment.task);
    let precision = world.resource::<TrainingPrecision>().0;
    let sizes = data.set.sizes();
    let residency = world.get_resource::<ChosenResidency>();
    RunStarted {
        scenario: scenario.name.clone(),
        scenario_hash: scenario_hash.into(),
        task: task.name.clone(),
        task_kind: match task.data.topology() {
            Topology::Image => TaskKind::Classification,
            Topology::Tokens => TaskKind::LanguageModel,
        },
        controller: scenario.policy.controller.clone(),
        controller_hash,
        n_envs: experiment.envs.len() as u32,
        n_rounds: scenario.run.rounds,
        max_steps: task.max_steps,
        slots: experiment.layout.slots().iter().map(|spec| spec.slot).collect(),
        host_params,
        policy_params,
        seed: BigInteger(scenario.run.seed),
        env_devices: scenario.run.devices.iter().map(ToString::to_string).collect(),
        amp_dtype: mixed_name(precision).map(String::from),
        matmul_precision: scenario.run.matmul_precision_in_force().name().into(),
        deterministic: scenario.run.deterministic,
        dataset: DatasetInfo {
            name: data.set.name().into(),
            train_n: sizes.train as u64,
            val_n: sizes.val as u64,
            test_n: sizes.test as u64,
            hash: data.set.hash().into(),
            residency: residency.map(|chosen| chosen.residency.name().into()),
            residency_reason: residency.map(|chosen| chosen.reason.clone()),
            notes: data.set.notes().to_vec(),
        },
        resumed_from: resume.map(|point| point.checkpoint.clone()),
        fallbacks: world.resource::<SelfTest>().fallbacks.clone(),
        file_hashes: BTreeMap::new(),
    }
}
