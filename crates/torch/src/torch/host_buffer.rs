//! Bytes on their way from a thread that reads them to a device that another thread feeds.

use std::ffi::c_void;
use std::ptr;

use tch::{Device, Kind, Tensor};

use super::ffi::{self, Opaque};
use super::{TorchError, copy_into, pinned};

/// Memory of the host that is filled, copied to a device and filled again: pinned where the device is CUDA, so that only the
/// next fill waits for the copy.
#[derive(Debug)]
pub struct HostBuffer {
    /// `u8 [n]`; there is no other handle.
    bytes: Tensor,
    device: Device,
    /// The point at which a CUDA stream is done with the last copy.
    copied: Option<Event>,
}

impl HostBuffer {
    /// A buffer of `len` bytes, for copies to `device`.
    ///
    /// # Errors
    /// Memory that runs out.
    pub fn new(len: usize, device: Device) -> Result<Self, TorchError> {
        let mut bytes = Tensor::f_zeros([len as i64], (Kind::Uint8, Device::Cpu))?;
        if device.is_cuda() {
            bytes = pinned(&bytes)?;
        }
        Ok(Self {
            bytes,
            device,
            copied: None,
        })
    }

    /// The bytes, once the copy that was queued last is done: waits for it.
    ///
    /// # Errors
    /// A device error.
    pub fn bytes_mut(&mut self) -> Result<&mut [u8], TorchError> {
        if let Some(event) = &self.copied {
            event.wait()?;
        }
        let (data, len): (*mut c_void, usize) = (self.bytes.data_ptr(), self.bytes.numel());
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the tensor is contiguous, holds `len` initialised bytes of host memory, and never leaves `self`, which is
        // borrowed for as long as the slice; no device reads it any more.
        Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), len) })
    }

    /// Queues a copy into `to`, `u8` with as many elements, in the current stream of its device.
    ///
    /// # Errors
    /// Another number of elements; a device error.
    pub fn copy_to(&mut self, to: &Tensor) -> Result<(), TorchError> {
        copy_into(to, &self.bytes.f_view_as(to)?, self.device.is_cuda())?;
        if let Device::Cuda(index) = self.device {
            self.copied.get_or_insert_default().record(index)?;
        }
        Ok(())
    }
}

/// A place in a stream of a CUDA device.
#[derive(Debug)]
struct Event(*mut Opaque);

// SAFETY: libtorch's events may be used from any thread, by one at a time, which `&mut` and `HostBuffer` see to.
unsafe impl Send for Event {}

impl Default for Event {
    /// No place yet: nothing is waited for.
    fn default() -> Self {
        Self(ptr::null_mut())
    }
}

impl Event {
    fn record(&mut self, index: usize) -> Result<(), TorchError> {
        let device_type = ffi::device_type(Device::Cuda(index));
        // SAFETY: the event is null or one that the shim made.
        unsafe { ffi::check(ffi::simic_event_record(device_type, index as i64, &mut self.0)) }
    }

    fn wait(&self) -> Result<(), TorchError> {
        if self.0.is_null() {
            return Ok(());
        }
        // SAFETY: the shim made the event, which lives as long as `self`.
        unsafe { ffi::check(ffi::simic_event_wait(self.0)) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: null, or made by the shim and freed nowhere else.
        unsafe { ffi::simic_event_free(self.0) }
    }
}

#[cfg(test)]
mod tests;
