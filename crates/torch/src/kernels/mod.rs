//! The engine's own kernels, for f32 on a CPU, and the operators on them.
//!
//! The C++ here knows libtorch's tensors and graph (`native.cpp` lists it); `arithmetic/` does not: plain functions over
//! arrays, compiled once for each set of instructions.

mod backward;
mod batch;
mod gradients;
mod level;
mod fused;
mod update;

pub use backward::backward;
pub use batch::{LossRecord, ValidationColumns, add_validation, cross_entropy, gather_images};
pub use fused::{
    BatchNorm, BlockEnd, FoldedBlock, GroupNormOf, Onto, Silu, add_scaled, add_scaled_into, conv_block, conv_layer,
    head, incubate, is_served, max_pool, norm_residual, serves_block, serves_convolution, squeeze_excite, tile_side,
};
pub use gradients::{
    GradientThresholds, GroupColumns, GroupNorm, clip_group, drop_grads, grad_stats, unscale_grads, zero_grads,
};
pub use level::{ForcedKernels, KernelLevel, kernel_levels};
pub use update::{GroupUpdate, Trained};
