//! Memory: on CPU, freed blocks of tensors are kept in the process; for other devices, the bytes that are left and in use.

use serde::{Deserialize, Serialize};
use tch::Device;

use super::ffi;

/// Keeps freed blocks of tensors for the next ones: those of up to 1 MiB by the thread that frees them, up to 32 MiB
/// each. Larger ones, each mapped separately, are in one list for all threads, until they have gone unused for long.
///
/// By default every large block is mapped, zeroed page by page and unmapped again around each tensor operation, which
/// costs more than the arithmetic. Kept in the C library's heaps they leave more holes than there are tensors, as sizes
/// change when seeds grow. Small tensors come and go by the dozen in each batch, which the C library's aligned allocation
/// is slow at.
pub fn keep_freed_blocks() {
    // SAFETY: libtorch changes its allocator for later allocations only; each block knows who frees it.
    unsafe { ffi::simic_keep_tensor_blocks() };
}

/// Bytes of freed tensors that the calling thread keeps for its own next ones.
pub fn kept_bytes() -> usize {
    // SAFETY: a number of the calling thread.
    unsafe { ffi::simic_kept_bytes() }
}

/// Frees the blocks that the calling thread keeps, of tensors and of libtorch's libraries the buffers of their products,
/// and the large freed blocks of all threads. The buffers of a thread that ends without this call are lost.
pub fn free_thread_buffers() {
    // SAFETY: no product is being computed on the calling thread, and blocks that are kept belong to no tensor.
    unsafe { ffi::simic_free_thread_buffers() };
}

/// [`free_thread_buffers`] when dropped. As the last field of what owns many tensors it keeps the thread that drops them
/// from keeping their memory, which other threads have allocated and will not find again.
#[derive(Debug, Default)]
pub struct FreeThreadBuffers;

impl Drop for FreeThreadBuffers {
    fn drop(&mut self) {
        free_thread_buffers();
    }
}

/// Bytes that a device has left for all processes. `None` for the CPU, whose memory is the machine's, and for devices that do
/// not report it.
pub fn free_bytes(device: Device) -> Option<u64> {
    let index = index_of(device)?;
    let mut bytes = 0;
    // SAFETY: `bytes` lives through the call.
    let asked = unsafe { ffi::check(ffi::simic_free_bytes(ffi::device_type(device), index, &mut bytes)) };
    asked.ok().map(|()| bytes)
}

/// Memory that the process has of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceMemory {
    /// Bytes in tensors.
    pub allocated: u64,
    /// The most that was in tensors at once since [`reset_peak_memory`].
    pub peak: u64,
    /// Bytes held by libtorch for tensors, in use or not.
    pub reserved: u64,
}

/// The counts of libtorch's allocator for a device. `None` for the CPU, which it does not count, and for devices not in use.
pub fn device_memory(device: Device) -> Option<DeviceMemory> {
    let index = index_of(device)?;
    let mut bytes = [0; 3];
    // SAFETY: three numbers are written to `bytes`, which lives through the call.
    let asked = unsafe {
        ffi::check(ffi::simic_device_memory(
            ffi::device_type(device),
            index,
            bytes.as_mut_ptr(),
        ))
    };
    let [allocated, peak, reserved] = bytes;
    asked.ok().map(|()| DeviceMemory {
        allocated,
        peak,
        reserved,
    })
}

/// Restarts the peak of [`device_memory`]. Does nothing where there is none.
pub fn reset_peak_memory(device: Device) {
    if let Some(index) = index_of(device) {
        // SAFETY: libtorch changes a number of its own, or says that it has none of this device.
        let _ = unsafe { ffi::check(ffi::simic_reset_peak_memory(ffi::device_type(device), index)) };
    }
}

fn index_of(device: Device) -> Option<i64> {
    match device {
        Device::Cuda(index) => Some(index as i64),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
