//! Memory: on CPU, freed blocks are kept in the process; of other devices, how much is left.

use tch::Device;

use super::ffi;

/// Has small blocks of tensors kept by the thread that frees them, up to 32 MiB each, and tells glibc to keep large freed
/// blocks instead of handing them back to the kernel.
///
/// By default every block above the mmap threshold is mapped, zeroed page by page and unmapped again around each tensor
/// operation, which costs more than the arithmetic. Without mapped blocks and without trimming, memory that a batch
/// needed is there for the next one. Small tensors come and go by the dozen in each batch, which glibc's aligned
/// allocation is slow at. A few arenas let the env workers allocate without waiting for each other. Call
/// this first in `main`: arenas that exist already stay.
///
/// Returns whether all of glibc's settings were taken; `false` with other C libraries.
pub fn keep_freed_blocks() -> bool {
    // SAFETY: libtorch changes its allocator for later allocations only; each block knows who frees it.
    unsafe { ffi::simic_keep_tensor_blocks() };
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// More workers than this share arenas; measured at two workers, one arena costs a fifth of the throughput.
        const ARENAS: i32 = 8;
        /// Grow the heap in steps of 64 MiB.
        const TOP_PAD_BYTES: i32 = 64 << 20;
        let settings = [
            (libc::M_ARENA_MAX, ARENAS),
            (libc::M_MMAP_MAX, 0),
            // -1: never trim.
            (libc::M_TRIM_THRESHOLD, -1),
            (libc::M_TOP_PAD, TOP_PAD_BYTES),
        ];
        settings.into_iter().all(|(parameter, value)| {
            // SAFETY: mallopt takes plain numbers and locks the allocator itself.
            unsafe { libc::mallopt(parameter, value) == 1 }
        })
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    {
        false
    }
}

/// Bytes of freed tensors that the calling thread keeps for its next ones.
pub fn kept_bytes() -> usize {
    // SAFETY: a number of the calling thread.
    unsafe { ffi::simic_kept_bytes() }
}

/// Gives back what the calling thread keeps: freed blocks of tensors, and of libtorch's libraries the buffers of their products.
/// These are lost with a thread that ends without.
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
/// not tell.
pub fn free_bytes(device: Device) -> Option<u64> {
    let index = match device {
        Device::Cuda(index) => index as i64,
        _ => return None,
    };
    let mut bytes = 0;
    // SAFETY: `bytes` lives through the call.
    let asked = unsafe { ffi::check(ffi::simic_free_bytes(ffi::device_type(device), index, &mut bytes)) };
    asked.ok().map(|()| bytes)
}
