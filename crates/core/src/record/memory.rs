//! Memory in use: of the machine by the process, and of each device by its tensors. Every round records it; a file has it where an
//! anomaly is kept, and where a run ends because no memory is left.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use serde::Serialize;

use super::RunDirectory;
use super::files::write_json;
use crate::env::Experiment;
use crate::health::{EngineError, RunHealth};
use crate::run::Room;
use crate::scenario::{DeviceSpec, Scenario};
use crate::storage::remove_file;
use crate::torch::{DeviceMemory, TorchError, device_memory, device_of};

/// Name of the file.
pub(crate) const MEMORY_FILE: &str = "memory.json";

/// Memory in use now; the fields are those of `round_finished`.
#[derive(Debug, Serialize)]
pub(crate) struct MemoryInUse {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_limit_bytes: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) device_memory_bytes: BTreeMap<String, DeviceMemory>,
}

impl MemoryInUse {
    /// Memory of the process and the devices of its run.
    pub(crate) fn now(scenario: &Scenario) -> Self {
        let (memory_bytes, memory_limit_bytes) = Room::in_use(&scenario.run).unzip();
        let of_device = |spec: DeviceSpec| Some((spec.to_string(), device_memory(device_of(spec))?));
        Self {
            memory_bytes,
            memory_limit_bytes,
            device_memory_bytes: scenario.devices().into_iter().filter_map(of_device).collect(),
        }
    }
}

/// Writes what was in use, with the peaks since the last round, into the folder of a run that failed because no memory was left.
/// Otherwise an earlier life's file has no reason any more.
pub(crate) fn keep_memory(health: Res<RunHealth>, experiment: Res<Experiment>, directory: Res<RunDirectory>) {
    let names_memory =
        |error: &EngineError| matches!(TorchError::classify(error.to_string()), TorchError::OutOfMemory(_));
    let file = directory.path().join(MEMORY_FILE);
    if !health.failure.as_ref().is_some_and(names_memory) {
        if file.exists() {
            _ = remove_file(&file);
        }
        return;
    }
    if let Err(error) = write_json(&file, &MemoryInUse::now(&experiment.scenario)) {
        tracing::warn!(%error, file = %file.display(), "the memory in use could not be written");
    }
}
