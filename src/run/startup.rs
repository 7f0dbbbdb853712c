//! From a frozen experiment to open devices and loaded data (spec 06 §4.1).

use std::num::NonZero;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;

use super::StopSignal;
use crate::data::{self, DataError, EvalSet, FeedArithmetic, ResidentData};
use crate::env::{Backend, Devices, EnvPool, Experiment, LoadedData, RunClock, RunLength};
use crate::health::{EngineError, Failure, Position, record_failure};
use crate::host::Topology;
use crate::scenario::{Launch, MatmulPrecision};
use crate::schedule::{Startup, Work};
use crate::seed::BlueprintRegistry;
use crate::torch::{self, DeviceSpec, SelfTest};

fn at_start(failure: impl Into<Failure>) -> EngineError {
    EngineError {
        phase: "start-up",
        position: Position::default(),
        failure: failure.into(),
    }
}

/// Process-wide switches, set once before the first tensor (spec 06 U2).
fn init_backend(mut commands: Commands, experiment: Res<Experiment>) -> Result<(), EngineError> {
    let run = &experiment.scenario.run;
    torch::keep_freed_blocks();
    torch::set_intra_op_threads(NonZero::<u16>::MIN).map_err(at_start)?;
    torch::set_deterministic(run.deterministic).map_err(at_start)?;
    let threads = match run.launch {
        Launch::Parallel => experiment.threads.min(experiment.envs.len()),
        Launch::Sequential => 1,
    };
    commands.insert_resource(EnvPool::new(threads).map_err(at_start)?);
    commands.insert_resource(torch::HostSyncCounter::default());
    Ok(())
}

/// Opens what the scenario lists; CUDA is loaded here, and only if it is listed (spec 06 U3).
fn open_devices(mut commands: Commands, experiment: Res<Experiment>) -> Result<(), EngineError> {
    let run = &experiment.scenario.run;
    let specs: Vec<DeviceSpec> = run
        .devices
        .iter()
        .map(|text| {
            text.parse()
                .map_err(|error: torch::DeviceError| at_start(Failure::message(error.to_string())))
        })
        .collect::<Result<_, _>>()?;
    let cuda: Vec<usize> = specs
        .iter()
        .filter_map(|spec| match spec {
            DeviceSpec::Cuda(index) => Some(*index),
            DeviceSpec::Cpu | DeviceSpec::Mps => None,
        })
        .collect();
    if !cuda.is_empty() {
        torch::load_cuda(&cuda, run.deterministic).map_err(|error| at_start(Failure::message(error.to_string())))?;
        // On a CPU the lower precisions may mean bf16 arithmetic; they are meant for tensor cores.
        let precision = if run.deterministic {
            MatmulPrecision::Highest
        } else {
            run.matmul_precision
        };
        torch::set_matmul_precision(precision).map_err(at_start)?;
    }
    let devices: Vec<_> = specs.into_iter().map(DeviceSpec::to_tch).collect();
    let tests: Vec<SelfTest> = devices.iter().map(|&device| torch::self_test(device)).collect();
    let refused = tests.iter().find(|test| test.refused.is_some()).unwrap_or(&tests[0]);
    commands.insert_resource(Backend {
        optimizer: refused.implementation,
        fallbacks: tests.iter().filter_map(|test| test.refused.clone()).collect(),
    });
    commands.insert_resource(Devices(devices));
    Ok(())
}

/// Loads, checks and uploads the data, and with it fixes the length of the run (spec 06 U4).
fn load_datasets(
    mut commands: Commands,
    experiment: Res<Experiment>,
    devices: Res<Devices>,
) -> Result<(), EngineError> {
    let set = data::load(&experiment.task, experiment.folder.as_deref()).map_err(at_start)?;
    let scenario = &experiment.scenario;
    let feed =
        FeedArithmetic::new(&experiment.task, scenario.data.feed, &set, scenario.run.n_envs).map_err(at_start)?;
    let upload = |&device| -> Result<_, DataError> {
        Ok((
            ResidentData::upload(&set, experiment.task.augment, device)?,
            EvalSet::upload(&set, &set.test, device)?,
        ))
    };
    let (resident, test) = devices
        .0
        .iter()
        .map(upload)
        .collect::<Result<(Vec<_>, Vec<_>), _>>()
        .map_err(at_start)?;
    commands.insert_resource(RunClock::new(RunLength {
        first_round: experiment.rounds.start,
        end_round: experiment.rounds.end,
        max_steps: experiment.task.max_steps,
        train_batches: feed.batches,
        val_batches: feed.val_batches,
    }));
    commands.insert_resource(LoadedData {
        set,
        feed,
        resident: SyncCell::new(resident),
        test: SyncCell::new(test),
    });
    Ok(())
}

/// Tries every seed module at the widths of the run's slots, so that a bad one is named before anything grows.
fn check_blueprints(
    experiment: Res<Experiment>,
    devices: Res<Devices>,
    blueprints: Res<BlueprintRegistry>,
    syncs: Res<torch::HostSyncCounter>,
) -> Result<(), EngineError> {
    let mut widths: Vec<i64> = experiment.layout.slots().iter().map(|slot| slot.channels).collect();
    widths.sort_unstable();
    widths.dedup();
    blueprints
        .check(Topology::Cnn, &widths, devices.of_env(0), &syncs)
        .map_err(at_start)
}

/// Opens the backend, the devices and the data, and tries the seed modules.
pub struct StartupPlugin;

impl Plugin for StartupPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<BlueprintRegistry>()
            .init_resource::<StopSignal>()
            .add_systems(Startup, init_backend.pipe(record_failure).in_set(Work::InitBackend))
            .add_systems(Startup, open_devices.pipe(record_failure).in_set(Work::OpenDevices))
            .add_systems(Startup, load_datasets.pipe(record_failure).in_set(Work::LoadDatasets))
            .add_systems(
                Startup,
                check_blueprints.pipe(record_failure).in_set(Work::CheckBlueprints),
            );
    }
}
