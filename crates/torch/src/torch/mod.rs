//! Safe additions to tch: guards, streams, memory, copies in one call, the door for reads, CUDA at run time.
//!
//! Everything unsafe of the engine lives in this folder and in `kernels`, over C++ that uses libtorch's device-generic
//! headers only: the engine compiles against a CPU-only libtorch and finds CUDA at run time. Only CUDA graphs have no such
//! headers, and are in a separate library. C++ exceptions arrive as [`TorchError`].

mod backend;
mod cuda;
mod gpu;
mod error;
mod encode;
pub(crate) mod ffi;
mod finite_guard;
mod guards;
mod memory;
mod precision;
mod tensors;
mod host_buffer;
mod threads;
mod trace;
mod read;
mod stream;
mod graphs;
mod version;
#[cfg(any(test, feature = "testing"))]
pub mod fixtures;

pub use backend::{Backend, device_of};
pub use cuda::{CudaError, POOL_STREAMS, fix_cublas_workspace, load_cuda};
pub use encode::{PlainTensor, decode_described, decode_plain, encode_described, encode_plain, encode_tensors};
pub use error::{TorchError, catch, is_catching};
pub use finite_guard::FiniteGuard;
pub use gpu::{Gpu, gpu};
pub use graphs::{Graph, capture_error, graphs_unavailable};
pub use guards::{Autocast, Inference, NoGrad};
pub use host_buffer::HostBuffer;
pub use memory::{
    DeviceMemory, FreeThreadBuffers, device_memory, free_bytes, free_thread_buffers, keep_freed_blocks, kept_bytes,
    reset_peak_memory,
};
pub use precision::{mixed_kind, mixed_name, set_deterministic, set_matmul_precision};
pub(crate) use read::copy_to_host;
pub use read::{HostSyncCounter, peek, read_f32, read_f64};
pub use stream::{Stream, StreamGuard};
pub use tensors::{channels_last, copy_all, copy_into, is_channels_last, pinned, synchronize, upload, zero_all};
pub use threads::set_intra_op_threads;
pub use trace::{StreamTrace, TraceEntry, TraceOperation};
pub use version::libtorch_version;
