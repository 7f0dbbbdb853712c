//! Operators of hosts and seeds on the engine's own kernels (`fused.cpp`): the work of five to ten operators of libtorch
//! on small images is one call and one node of the graph.
//!
//! They serve f32 on CPU ([`is_served`]). Images are `[n, channels, height, width]`, channels innermost in memory (others are
//! copied), and so are results. Sums run in a fixed order, with any number of threads and any of the CPU's instructions.

use std::ffi::c_char;

use tch::{TchError, Tensor};
use torch_sys::C_tensor;

use super::level::are_left_out;
use crate::torch::ffi::{self, optional_pointer, pointer};

/// Returns whether the operators here take `x`: f32 on CPU, no autocast to another type, and a thread that is not
/// [forced to leave them out](super::ForcedKernels::none).
pub fn is_served(x: &Tensor) -> bool {
    // SAFETY: `x` outlives the call, which reads its metadata only.
    !are_left_out() && unsafe { ffi::simic_is_served(x.as_ptr()) }
}

/// Returns whether the engine's kernels compute convolutions of `inputs` to `outputs` channels with square kernels
/// `kernel` wide: of 1 or 3, up to 64 channels. Beyond, libtorch's blocked products are faster. With `depthwise` filters
/// any odd kernel.
pub const fn serves_convolution(inputs: i64, outputs: i64, kernel: i64, depthwise: bool) -> bool {
    inputs <= 64 && outputs <= 64 && (depthwise || kernel <= 3)
}

/// Returns whether [`conv_block`] computes the dense kernels of [`serves_convolution`] at every `stride`-th row and column;
/// at every second one for whole vectors of channels.
pub const fn serves_block(inputs: i64, outputs: i64, kernel: i64, stride: i64) -> bool {
    let is_whole = inputs % 16 == 0 && outputs % 16 == 0;
    serves_convolution(inputs, outputs, kernel, false) && (stride == 1 || stride == 2 && is_whole)
}

/// The side of the output tiles by which the kernels compute a dense convolution of images `side` pixels high and wide, 4 or 2.
/// 0 for direct sums, `None` for a convolution that is libtorch's.
pub fn tile_side(side: i64, inputs: i64, outputs: i64, kernel: i64, stride: i64) -> Option<i64> {
    let is_served = serves_block(inputs, outputs, kernel, stride);
    is_served.then(|| ffi::simic_tile_side(side, inputs, outputs, kernel, stride))
}

/// The tensors of a batch norm, each with one value per channel.
#[derive(Debug)]
pub struct BatchNorm {
    /// γ.
    pub scale: Tensor,
    /// β.
    pub shift: Tensor,
    /// Running mean, which training moves.
    pub running_mean: Tensor,
    /// Running (unbiased) variance, which training moves.
    pub running_var: Tensor,
}

/// The tensors and groups of a group norm.
#[derive(Clone, Copy, Debug)]
pub struct GroupNormOf<'a> {
    /// γ, one per channel.
    pub scale: &'a Tensor,
    /// β, one per channel.
    pub shift: &'a Tensor,
    /// Groups of neighbouring channels, a divisor of their number.
    pub groups: i64,
    /// Added to the variance.
    pub epsilon: f64,
}

/// The place of SiLU in a [`conv_layer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silu {
    /// SiLU directly after the convolution.
    pub before_norm: bool,
    /// SiLU after the norm. Ignored without a norm.
    pub after_norm: bool,
}

/// The way in which a residual δ enters features h.
#[derive(Clone, Copy, Debug)]
pub enum Onto<'a> {
    /// h + α·δ.
    Added {
        /// h.
        features: &'a Tensor,
        /// α.
        alpha: f64,
    },
    /// Exactly h, from whose gradient δ learns as if it were added: [`incubate`].
    StraightThrough {
        /// h.
        features: &'a Tensor,
    },
}

impl<'a> Onto<'a> {
    /// h, of any shape.
    pub fn features(self) -> &'a Tensor {
        match self {
            Self::Added { features, .. } | Self::StraightThrough { features } => features,
        }
    }

    /// The features that `delta`, of their shape, has entered. On any device, in any shape.
    ///
    /// # Errors
    /// Libtorch's text where shapes do not fit.
    pub fn enter(self, delta: &Tensor) -> Result<Tensor, TchError> {
        match self {
            Self::Added { features, alpha } => add_scaled(features, delta, alpha),
            Self::StraightThrough { features } => incubate(features, delta),
        }
    }
}

/// The end of a block, after its norm.
#[derive(Clone, Copy, Debug)]
pub enum BlockEnd<'a> {
    /// ReLU.
    Relu,
    /// ReLU and a 2×2 max pool that leaves out a last odd row or column.
    ReluAndPool,
    /// ReLU of the sum with a residual, of the shape of the block's result.
    AddAndRelu(&'a Tensor),
}

impl<'a> BlockEnd<'a> {
    const fn is_pooled(self) -> bool {
        matches!(self, Self::ReluAndPool)
    }

    const fn residual(self) -> Option<&'a Tensor> {
        match self {
            Self::AddAndRelu(residual) => Some(residual),
            Self::Relu | Self::ReluAndPool => None,
        }
    }
}

/// A block in training: convolution ("same" padding, no bias) at every `stride`-th row and column, batch norm by the batch's
/// statistics, and its end. [`serves_block`] says which blocks fit.
///
/// `weight`: `[outputs, inputs, k, k]`, k odd. Running statistics move by `momentum` towards the batch's, unless these
/// are not finite or of a single value.
///
/// # Errors
/// Libtorch's text where shapes do not fit.
pub fn conv_block(
    x: &Tensor,
    weight: &Tensor,
    stride: i64,
    norm: &BatchNorm,
    momentum: f64,
    epsilon: f64,
    end: BlockEnd,
) -> Result<Tensor, TchError> {
    // SAFETY: all tensors outlive the call; the running statistics are written in place; a null pointer says that there
    // isn't a residual.
    operator(|out| unsafe {
        ffi::simic_block(
            x.as_ptr(),
            weight.as_ptr(),
            norm.scale.as_ptr(),
            norm.shift.as_ptr(),
            norm.running_mean.as_ptr(),
            norm.running_var.as_ptr(),
            momentum,
            epsilon,
            stride,
            end.is_pooled(),
            optional_pointer(end.residual()),
            out,
        )
    })
}

/// A block's convolution of stride 1 with its norm folded in.
#[derive(Debug)]
pub struct FoldedBlock {
    weight: Tensor,
    /// One a lane of the kernels: a multiple of 16.
    bias: Tensor,
}

impl FoldedBlock {
    /// Room for a block with weights like `weight`, `[outputs, inputs, k, k]`; to be [filled](Self::refill).
    ///
    /// # Errors
    /// Libtorch's, when memory runs out.
    pub fn new(weight: &Tensor) -> Result<Self, TchError> {
        let (outputs, inputs, height, width) = weight.size4()?;
        let lanes = outputs.cast_unsigned().next_multiple_of(16).cast_signed();
        let zeros = |sizes: &[i64]| Tensor::f_zeros(sizes, (weight.kind(), weight.device()));
        Ok(Self {
            weight: zeros(&[outputs, height, width, inputs])?.f_permute([0, 3, 1, 2])?,
            bias: zeros(&[lanes])?,
        })
    }

    /// Takes over weights and statistics: w' = w·s and b' = β − μ·s with s = γ/√(σ² + ε).
    ///
    /// # Errors
    /// Libtorch's text where shapes do not fit.
    pub fn refill(&self, weight: &Tensor, norm: &BatchNorm, epsilon: f64) -> Result<(), TchError> {
        // SAFETY: all tensors outlive the call, which writes into those of `self`.
        unsafe {
            ffi::check_operator(ffi::simic_fold_block(
                weight.as_ptr(),
                norm.scale.as_ptr(),
                norm.shift.as_ptr(),
                norm.running_mean.as_ptr(),
                norm.running_var.as_ptr(),
                epsilon,
                pointer(&self.weight),
                pointer(&self.bias),
            ))
        }
    }

    /// Convolution, bias and the block's end. Records no gradient.
    ///
    /// # Errors
    /// Libtorch's text where shapes do not fit.
    pub fn forward(&self, x: &Tensor, end: BlockEnd) -> Result<Tensor, TchError> {
        // SAFETY: all tensors outlive the call; a null pointer says that there is no residual.
        operator(|out| unsafe {
            ffi::simic_folded_block(
                x.as_ptr(),
                self.weight.as_ptr(),
                self.bias.as_ptr(),
                end.is_pooled(),
                optional_pointer(end.residual()),
                out,
            )
        })
    }
}

/// A 2×2 max pool with stride 2.
///
/// # Errors
/// Libtorch's text where shapes do not fit.
pub fn max_pool(x: &Tensor) -> Result<Tensor, TchError> {
    // SAFETY: `x` outlives the call.
    operator(|out| unsafe { ffi::simic_max_pool(x.as_ptr(), out) })
}

/// Mean over positions, then a linear map: `[n, channels, h, w]` to `[n, classes]`; `weight`: `[classes, channels]`.
///
/// # Errors
/// Libtorch's text where shapes do not fit.
pub fn head(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor, TchError> {
    // SAFETY: all tensors outlive the call.
    operator(|out| unsafe { ffi::simic_head(x.as_ptr(), weight.as_ptr(), bias.as_ptr(), out) })
}

/// A layer of a seed: convolution (stride 1, "same" padding, no bias), SiLU, group norm, SiLU, the last three optional. With
/// `onto` the features that its result has entered, in one pass: the result itself is written nowhere.
///
/// `weight`: `[outputs, inputs, k, k]`, or `[channels, 1, k, k]` for a filter a channel; k odd.
///
/// # Errors
/// Libtorch's text where shapes do not fit.
pub fn conv_layer(
    x: &Tensor,
    weight: &Tensor,
    norm: Option<GroupNormOf>,
    silu: Silu,
    onto: Option<Onto>,
) -> Result<Tensor, TchError> {
    let (alpha, straight_through) = match onto {
        Some(Onto::Added { alpha, .. }) => (alpha, false),
        Some(Onto::StraightThrough { .. }) => (1.0, true),
        None => (1.0, false),
    };
    // SAFETY: all tensors outlive the call; null pointers say that there is no norm, and nothing to enter.
    operator(|out| unsafe {
        ffi::simic_layer(
            x.as_ptr(),
            weight.as_ptr(),
            optional_pointer(norm.map(|norm| norm.scale)),
            optional_pointer(norm.map(|norm| norm.shift)),
            norm.map_or(1, |norm| norm.groups),
            norm.map_or(0.0, |norm| norm.epsilon),
            silu.before_norm,
            silu.after_norm,
            optional_pointer(onto.map(Onto::features)),
            alpha,
            straight_through,
            out,
        )
    })
}

/// tanh(strength)·(norm(x) − x); `strength`: `[1]`.
///
/// # Errors
/// Libtorch's text where shapes do not fit.
pub fn norm_residual(x: &Tensor, norm: GroupNormOf, strength: &Tensor) -> Result<Tensor, TchError> {
    // SAFETY: all tensors outlive the call.
    operator(|out| unsafe {
        ffi::simic_norm_residual(
            x.as_ptr(),
            norm.scale.as_ptr(),
            norm.shift.as_ptr(),
            strength.as_ptr(),
            norm.groups,
            norm.epsilon,
            out,
        )
    })
}

/// x·tanh(W₂·silu(W₁·mean(x)) + b); `squeeze` W₁: `[hidden, channels]`, `excite` W₂: `[channels, hidden]`.
///
/// # Errors
/// Libtorch's text where shapes do not fit.
pub fn squeeze_excite(x: &Tensor, squeeze: &Tensor, excite: &Tensor, bias: &Tensor) -> Result<Tensor, TchError> {
    // SAFETY: all tensors outlive the call.
    operator(|out| unsafe {
        ffi::simic_squeeze_excite(x.as_ptr(), squeeze.as_ptr(), excite.as_ptr(), bias.as_ptr(), out)
    })
}

/// Exactly `h`, in whose storage it lies, with δ in its graph: ∂y/∂h = ∂y/∂δ = 1. On any device.
///
/// # Errors
/// Libtorch's.
pub fn incubate(h: &Tensor, delta: &Tensor) -> Result<Tensor, TchError> {
    // SAFETY: both tensors outlive the call; the result keeps the storage of `h` alive.
    operator(|out| unsafe { ffi::simic_incubate(h.as_ptr(), delta.as_ptr(), out) })
}

/// h + α·δ. On any device.
///
/// # Errors
/// Libtorch's text where shapes do not fit.
pub fn add_scaled(h: &Tensor, delta: &Tensor, alpha: f64) -> Result<Tensor, TchError> {
    // SAFETY: both tensors outlive the call.
    operator(|out| unsafe { ffi::simic_add_scaled(h.as_ptr(), delta.as_ptr(), alpha, out) })
}

/// h + α·δ into `out`, which has its size; for evaluation, it takes no gradient. On any device.
///
/// # Errors
/// Libtorch's text where shapes do not fit.
pub fn add_scaled_into(out: &Tensor, h: &Tensor, delta: &Tensor, alpha: f64) -> Result<(), TchError> {
    // SAFETY: all tensors outlive the call, which writes into `out`.
    unsafe {
        ffi::check_operator(ffi::simic_add_scaled_into(
            pointer(out),
            h.as_ptr(),
            delta.as_ptr(),
            alpha,
        ))
    }
}

/// Returns the tensor that a call to the shim makes.
fn operator(call: impl FnOnce(*mut *mut C_tensor) -> *mut c_char) -> Result<Tensor, TchError> {
    let mut out = std::ptr::null_mut();
    let error = call(&mut out);
    // SAFETY: the text, if there is one, is the shim's; otherwise `out` is a tensor of its own that tch takes over.
    unsafe {
        ffi::check_operator(error)?;
        Ok(Tensor::from_ptr(out))
    }
}

#[cfg(test)]
mod tests;
