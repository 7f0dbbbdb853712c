//! The way from a frozen experiment to open devices and loaded data.

use std::num::NonZero;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;

use super::StopSignal;
use super::kernel_test;
use super::residency::ChosenResidency;
use crate::clock::{RunClock, RunLength};
use crate::data::{DataRegistry, FeedArithmetic, Readers, Resident, TaskData, refuse_packed};
use crate::env::{Devices, EnvPool, Experiment, LoadedData, SelfTest, StartingWeights};
use crate::health::Failure;
use crate::network::HostRegistry;
use crate::nn::{self, Implementation};
use crate::scenario::{DeviceSpec, Kernels, Residency};
use crate::schedule::{AddWork, Startup, Work};
use crate::seed::BlueprintRegistry;
use crate::torch::{self, Backend};

/// Process-wide switches, set once before the first tensor and the first worker. CUDA is loaded here, and only if it is
/// listed: libtorch looks for it once.
pub(crate) fn init_backend(mut commands: Commands, experiment: Res<Experiment>) -> Result<(), Failure> {
    let (cuda_devices, run) = (experiment.scenario.cuda_devices(), &experiment.scenario.run);
    torch::load_cuda(&cuda_devices, run.deterministic).map_err(|error| Failure::message(error.to_string()))?;
    torch::keep_freed_blocks();
    torch::set_intra_op_threads(NonZero::<u16>::MIN)?;
    torch::set_deterministic(run.deterministic)?;
    if run.cuda_graphs {
        // Trying its kernels waits for the device, which ends what another thread records.
        tch::Cuda::cudnn_set_benchmark(false);
    }
    torch::set_matmul_precision(run.matmul_precision_in_force())?;
    let threads = experiment.threads.min(experiment.envs.len());
    let envs = (&experiment.envs[..], &run.devices[..]);
    commands.insert_resource(EnvPool::new(threads, run.on_env_error, envs)?);
    commands.insert_resource(torch::HostSyncCounter::default());
    Ok(())
}

/// Opens what the scenario lists, and tries the engine's own kernels and the fused optimizers there.
pub(crate) fn open_devices(mut commands: Commands, experiment: Res<Experiment>) -> Result<(), Failure> {
    let (all, run) = (experiment.scenario.devices(), &experiment.scenario.run);
    let uses_own = run.kernels == Kernels::Own && all.contains(&DeviceSpec::Cpu);
    let refused = uses_own.then(kernel_test::refusal).flatten();
    let kernels = refused.as_ref().map_or(run.kernels, |_| Kernels::Libtorch);
    let open = |device: &DeviceSpec| Backend::new(torch::device_of(*device), kernels);
    let tested = |device: &DeviceSpec| nn::self_test(torch::device_of(*device), Implementation::Fused);
    let mut fallbacks: Vec<String> = all.iter().filter_map(tested).collect();
    let optimizer = if fallbacks.is_empty() {
        Implementation::Fused
    } else {
        Implementation::Plain
    };
    fallbacks.extend(refused);
    for reason in &fallbacks {
        tracing::warn!("{reason}; libtorch's operators compute instead");
    }
    commands.insert_resource(SelfTest {
        kernels,
        optimizer,
        fallbacks,
    });
    commands.insert_resource(Devices(run.devices.iter().map(open).collect()));
    Ok(())
}

/// The checks of start-up that need no start: whether the devices and given weights are there, and whether the data are and agree with task,
/// host and batches. Data that the program makes itself have been judged with the scenario.
///
/// # Errors
/// The failures of start-up.
pub fn check_place(world: &World) -> Result<(), Failure> {
    let experiment = world.resource::<Experiment>();
    let Experiment { scenario, task, .. } = experiment;
    // Reproducible products are fixed by the process that computes them.
    torch::load_cuda(&scenario.cuda_devices(), false).map_err(|error| Failure::message(error.to_string()))?;
    if task.data.part_sizes(&task.split).is_none() {
        read_data(experiment, world.resource(), world.resource())?;
    }
    StartingWeights::read(experiment, world.resource())?;
    Ok(())
}

/// The data of a run, checked against its task and host, and how they are dealt out.
fn read_data(
    experiment: &Experiment,
    sets: &DataRegistry,
    hosts: &HostRegistry,
) -> Result<(TaskData, FeedArithmetic), Failure> {
    let Experiment { scenario, task, .. } = experiment;
    let folder = experiment.folder.as_deref();
    if scenario.data.residency == Residency::Stream {
        refuse_packed(&task.data, folder)?;
    }
    let set = match &experiment.data {
        Some(set) => set.clone(),
        None => {
            let mut set = TaskData::load(task, folder, sets)?;
            let known = hosts.classes(task, folder);
            if known.len() as i64 == task.classes {
                set.compare_classes(&known);
            }
            for note in set.notes() {
                tracing::warn!("{note}");
            }
            set
        }
    };
    let host = hosts.of(&task.host, folder)?.plan(task.classes);
    set.check_host(host.topology(), host.input())?;
    let feed = set.arithmetic(task, scenario.run.n_envs)?;
    Ok((set, feed))
}

/// Loads, checks and uploads the data, and with it fixes the length of the run.
pub(crate) fn load_datasets(
    mut commands: Commands,
    experiment: Res<Experiment>,
    devices: Res<Devices>,
    sets: Res<DataRegistry>,
    hosts: Res<HostRegistry>,
) -> Result<(), Failure> {
    let (set, feed) = read_data(&experiment, &sets, &hosts)?;
    let scenario = &experiment.scenario;
    let augment = experiment.task.augment;
    let chosen = ChosenResidency::of(scenario.data.residency, &set, augment, (&scenario.run, &devices.0))?;
    let (set, readers) = match chosen.residency {
        Residency::Auto | Residency::Device => (set, None),
        Residency::Host => (set.in_memory()?, Some(Readers::new(scenario.data)?)),
        Residency::Stream => (set, Some(Readers::new(scenario.data)?)),
    };
    let upload = |backend: &Backend| Resident::upload(&set, augment, *backend, readers.as_ref());
    let resident = devices.0.iter().map(upload).collect::<Result<Vec<_>, _>>()?;
    // Envs read the data in their own streams, which are not ordered after the one that filled it.
    devices
        .0
        .iter()
        .try_for_each(|backend| torch::synchronize(backend.device))?;
    commands.insert_resource(RunClock::new(RunLength {
        first_round: experiment.rounds.start,
        end_round: experiment.rounds.end,
        max_steps: experiment.task.max_steps,
        train_batches: feed.batches,
        val_batches: feed.val_batches,
    }));
    commands.insert_resource(chosen);
    commands.insert_resource(LoadedData {
        set,
        feed,
        resident: SyncCell::new(resident),
        readers,
    });
    Ok(())
}

/// Settles on the seed modules for the run's host and tries every one at the widths of its slots, so that a bad one is named before anything grows.
pub(crate) fn check_blueprints(
    experiment: Res<Experiment>,
    devices: Res<Devices>,
    mut blueprints: ResMut<BlueprintRegistry>,
    syncs: Res<torch::HostSyncCounter>,
) -> Result<(), Failure> {
    blueprints.serve(experiment.task.data.topology());
    let written = serde_json::to_string(&experiment.scenario).map_err(|error| Failure::message(error.to_string()))?;
    let requested = blueprints.request(|id| written.contains(&format!("\"{id}\"")));
    requested.map_err(|error| Failure::message(error.to_string()))?;
    let mut widths: Vec<i64> = experiment.layout.slots().iter().map(|slot| slot.channels).collect();
    widths.sort_unstable();
    widths.dedup();
    Ok(blueprints.check(&widths, devices.of_env(0), &syncs)?)
}

/// Work before a run leaves a trace, and `Announce`, which leaves the first. None of it begins once a stop was requested:
/// data may take minutes, and a run that is not wanted any more needs no folder.
const BEFORE_RECORD: [Work; 14] = [
    Work::InitBackend,
    Work::ChoosePrecision,
    Work::OpenDevices,
    Work::LoadDatasets,
    Work::CheckBlueprints,
    Work::ReadInitialTopology,
    Work::ReadWeights,
    Work::BuildController,
    Work::BuildLearner,
    Work::SpawnEnvs,
    Work::EquipTraining,
    Work::EquipValidation,
    Work::Restore,
    Work::Announce,
];

fn stop_is_requested(stop: Res<StopSignal>) -> bool {
    stop.is_requested()
}

/// Opens the backend, the devices and the data, and tries the seed modules.
pub struct StartupPlugin;

impl Plugin for StartupPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<BlueprintRegistry>()
            .init_resource::<DataRegistry>()
            .init_resource::<HostRegistry>()
            .init_resource::<StopSignal>()
            .add_work(Startup, Work::InitBackend, init_backend)
            .add_work(Startup, Work::OpenDevices, open_devices)
            .add_work(Startup, Work::LoadDatasets, load_datasets)
            .add_work(Startup, Work::CheckBlueprints, check_blueprints)
            .edit_schedule(Startup, |schedule| {
                for work in BEFORE_RECORD {
                    schedule.configure_sets(work.run_if(not(stop_is_requested)));
                }
            });
    }
}
