//! The one door from device to host: every read goes through here, is counted, and is refused inside a step.
//!
//! A read waits for the device. Between the start of a step and its one sync the engine may not wait;
//! in debug builds a read there panics. clippy's disallowed methods keep the direct calls out of the rest of the crate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bevy_ecs::resource::Resource;
use tch::{Device, Kind, Tensor, kind};

use super::trace::{StreamTrace, TraceOperation};
use super::{TorchError, catch};

/// Counts device-to-host reads and knows whether one is allowed now.
#[derive(Debug, Default, Resource)]
pub struct HostSyncCounter {
    reads: AtomicU64,
    forbidden: AtomicBool,
    trace: Option<StreamTrace>,
}

impl HostSyncCounter {
    /// A counter that also records every read in `trace`.
    pub fn traced(trace: StreamTrace) -> Self {
        Self {
            trace: Some(trace),
            ..Self::default()
        }
    }

    /// Reads so far.
    pub fn count(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Forbids reads: from here to [`allow`](Self::allow) one is a mistake of the engine.
    pub fn forbid(&self) {
        self.forbidden.store(true, Ordering::Relaxed);
    }

    /// Allows reads again.
    pub fn allow(&self) {
        self.forbidden.store(false, Ordering::Relaxed);
    }

    fn record(&self, tensor: &Tensor) {
        debug_assert!(
            !self.forbidden.load(Ordering::Relaxed),
            "a device tensor is read where the engine may not wait"
        );
        self.reads.fetch_add(1, Ordering::Relaxed);
        if let Some(trace) = &self.trace {
            trace.record(None, TraceOperation::Read, Some(tensor));
        }
    }
}

/// All elements of `tensor` as f64, row by row. Waits for the device.
pub fn read_f64(tensor: &Tensor, counter: &HostSyncCounter) -> Result<Vec<f64>, TorchError> {
    read(tensor, Kind::Double, counter)
}

/// All elements of `tensor`, of any shape and kind on any device, as f32, row by row. Waits for the device.
pub fn read_f32(tensor: &Tensor, counter: &HostSyncCounter) -> Result<Vec<f32>, TorchError> {
    read(tensor, Kind::Float, counter)
}

fn read<T: kind::Element + Copy + Default>(
    tensor: &Tensor,
    kind: Kind,
    counter: &HostSyncCounter,
) -> Result<Vec<T>, TorchError> {
    counter.record(tensor);
    copy_to_host(tensor, kind)
}

/// A number in the host's memory, read without waiting; `None` if it is on a device.
pub fn peek(number: &Tensor) -> Result<Option<f64>, TorchError> {
    if number.device() != Device::Cpu {
        return Ok(None);
    }
    Ok(copy_to_host(number, Kind::Double)?.first().copied())
}

/// The uncounted copy, for self-tests before a run begins and for values that belong to no device.
pub(crate) fn copy_to_host<T: kind::Element + Copy + Default>(
    tensor: &Tensor,
    kind: Kind,
) -> Result<Vec<T>, TorchError> {
    let flat = catch(|| tensor.detach().to_kind(kind).contiguous())?;
    let mut values = vec![T::default(); flat.numel()];
    let n = values.len();
    // A tensor without elements has no address to copy from in libtorch.
    if n > 0 {
        #[expect(clippy::disallowed_methods, reason = "this is the door")]
        flat.f_copy_data(&mut values, n)?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests;
