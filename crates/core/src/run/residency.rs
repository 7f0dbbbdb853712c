//! The place of training data while a run trains on them: as the scenario says, or as there is memory.

use bevy_ecs::resource::Resource;
use tch::Device;

use super::room::{Room, size};
use crate::data::{DataError, TaskData};
use crate::scenario::{AugmentSpec, Residency, RunConfig};
use crate::torch::{Backend, free_bytes};

/// A copy on a device may take 1 / `DEVICE_SHARE` of its free memory: the rest is for networks and batches.
const DEVICE_SHARE: u128 = 4;
/// A copy in the machine's memory may take 1 / `HOST_SHARE` of the free part.
const HOST_SHARE: u128 = 2;

/// Valid data of `data.residency: stream`, and its other values, in words.
const STREAMED: &str = "valid: unpacked IDX files, NPY arrays of bytes, the folder of a CIFAR archive, token files, a text; or \
                        data.residency: auto, device or host";

/// The place of training data, and the reason for it.
#[derive(Resource, Clone, Debug, PartialEq, Eq)]
pub struct ChosenResidency {
    /// Never `Auto`.
    pub residency: Residency,
    /// The reason as a clause: `as data.residency says`.
    pub reason: String,
}

impl ChosenResidency {
    /// The residency that `data.residency` asks for, or one that the memory that is left is enough for.
    ///
    /// # Errors
    /// Data that are to be streamed and cannot be.
    pub(super) fn of(
        asked: Residency,
        set: &TaskData,
        augment: Option<AugmentSpec>,
        (run, devices): (&RunConfig, &[Backend]),
    ) -> Result<Self, DataError> {
        let machine = Room::now(run);
        let machine_bytes = machine.map(|room| u128::from(room.bytes));
        let free = devices.iter().map(|backend| match backend.device {
            Device::Cpu => machine_bytes,
            device => free_bytes(device).map(u128::from),
        });
        // Each entry has a copy, and a device may be listed more than once.
        let copies = |one: &Backend| devices.iter().filter(|other| other.device == one.device).count();
        let copies = devices.iter().map(copies).max().unwrap_or(1) as u128;
        let needs = Needs {
            on_device: copies * set.resident_bytes(augment),
            on_host: set.train_bytes(),
            is_in_files: set.is_in_files(),
        };
        let chosen = match asked {
            Residency::Auto => needs.choose(free.flatten().min(), machine_bytes),
            Residency::Stream if !needs.is_in_files => {
                let fault = format!(
                    "data.residency: stream is not possible, as the training part of '{}' must be converted when it is read",
                    set.name()
                );
                return Err(DataError::new(fault, STREAMED));
            }
            asked => Self {
                residency: asked,
                reason: "as data.residency says".into(),
            },
        };
        let machine = machine.map(|room| format!("; {room}")).unwrap_or_default();
        tracing::info!("training data: {}, {}{machine}", chosen.residency.name(), chosen.reason);
        Ok(chosen)
    }
}

/// Bytes of the training part.
struct Needs {
    on_device: u128,
    on_host: u128,
    is_in_files: bool,
}

impl Needs {
    /// The first place that has room, in bytes; `None` is unknown and counts as enough.
    fn choose(&self, device: Option<u128>, host: Option<u128>) -> ChosenResidency {
        let (on_device, on_host) = (size(self.on_device), size(self.on_host));
        let fits = |needed: u128, room: Option<u128>, share| room.is_none_or(|room| needed <= room / share);
        let (residency, reason) = if fits(self.on_device, device, DEVICE_SHARE) {
            let reason = format!("as its {on_device} take at most a quarter of what each device has left");
            (Residency::Device, reason)
        } else if !self.is_in_files {
            let reason = format!(
                "as its {on_device} would take more than a quarter of what a device has left, and it cannot be read from files"
            );
            (Residency::Host, reason)
        } else if fits(self.on_host, host, HOST_SHARE) {
            let reason = format!(
                "as its {on_device} would take more than a quarter of what a device has left, and {on_host} take at most half \
                 of what the machine has left"
            );
            (Residency::Host, reason)
        } else {
            let reason = format!("as its {on_host} would take more than half of what the machine has left");
            (Residency::Stream, reason)
        };
        ChosenResidency { residency, reason }
    }
}

#[cfg(test)]
mod tests;
