//! Building blocks of hosts, seeds and policies, and of their training: parameters, layers, optimizers, the loss scaler.

mod optimizer;
mod params;
mod layers;
mod attention;
mod group_norm;
mod scaler;
mod stack;
#[cfg(test)]
mod fixtures;

pub use attention::{AttentionInit, CausalAttention, Reach, Rotary};
pub use group_norm::{GroupNormLayer, group_count};
pub use layers::{BATCH_NORM_MOMENTUM, Conv2d, LayerNorm, Linear, Mode, NORM_EPS, max_pool_2x2, spatial_mean};
pub use optimizer::{Implementation, Optimizer, self_test};
pub use params::{Init, Param, ParamSet};
pub use scaler::LossScaler;
pub use stack::Stack;
