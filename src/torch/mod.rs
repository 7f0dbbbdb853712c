//! What tch lacks, safely: guards, streams, fused optimizers, multi-tensor gradients, the door for reads, CUDA at run
//! time; and what hosts and seeds share: parameters and layers.
//!
//! Everything unsafe of the engine lives in this folder, over C++ that uses libtorch's device-generic headers only
//! (`native.cpp` lists it): the engine compiles against a CPU-only libtorch and finds CUDA at run time. C++ exceptions
//! arrive as [`TorchError`]. `kernels/` knows no libtorch: plain arithmetic, compiled once for each set of
//! instructions.

mod attention;
mod backend;
mod backward;
mod batch;
mod cuda;
mod encode;
mod error;
mod ffi;
mod finite_guard;
#[cfg(test)]
pub(crate) mod fixtures;
mod fused;
mod gradients;
mod group_norm;
mod guards;
mod host_buffer;
mod kernel_level;
mod layers;
mod memory;
mod optimizer;
mod params;
mod plain;
mod precision;
mod read;
mod scaler;
mod stream;
mod tensors;
mod threads;
mod trace;
mod version;

pub use attention::{AttentionInit, CausalAttention, Reach, Rotary};
pub use backend::Backend;
pub use backward::backward;
pub use batch::{LossRecord, ValidationColumns, add_validation, cross_entropy, gather_images};
pub use cuda::{CudaError, fix_cublas_workspace, load_cuda};
pub use encode::{PlainTensor, decode_plain, encode_plain, encode_tensors};
pub use error::{TorchError, catch, is_catching};
pub use finite_guard::FiniteGuard;
pub use fused::{
    BatchNorm, BlockEnd, FoldedBlock, GroupNormOf, Onto, Silu, add_scaled, add_scaled_into, conv_block, conv_layer,
    head, incubate, is_served, max_pool, norm_residual, serves_block, serves_convolution, squeeze_excite,
};
pub use gradients::{GradientThresholds, GroupColumns, GroupNorm, clip_group, drop_grads, grad_stats, zero_grads};
pub use group_norm::{GroupNormLayer, group_count};
pub use guards::{Autocast, Inference, NoGrad};
pub use host_buffer::HostBuffer;
pub use kernel_level::{ForcedKernels, KernelLevel, kernel_levels};
pub use layers::{Conv2d, LayerNorm, Linear, Mode, NORM_EPS, max_pool_2x2, spatial_mean};
pub use memory::{FreeThreadBuffers, free_bytes, free_thread_buffers, keep_freed_blocks, kept_bytes};
pub use optimizer::{GroupUpdate, Implementation, Optimizer, self_test};
pub use params::{Init, Param, ParamSet};
pub use precision::{mixed_kind, mixed_name, set_deterministic, set_matmul_precision};
pub use read::{HostSyncCounter, peek, read_f32, read_f64, read_i64};
pub use scaler::LossScaler;
pub use stream::{Stream, StreamGuard};
pub use tensors::{channels_last, copy_all, copy_into, is_channels_last, synchronize, upload, zero_all};
pub use threads::set_intra_op_threads;
pub use trace::{StreamTrace, TraceEntry, TraceOperation};
pub use version::libtorch_version;
