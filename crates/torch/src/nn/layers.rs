//! Layers that hosts and seeds share.

use tch::{Device, TchError, Tensor};

use super::{Init, ParamSet};
use crate::kernels::{Silu, conv_layer, is_served, serves_block, serves_convolution};

/// Epsilon of every normalisation.
pub const NORM_EPS: f64 = 1e-5;
/// Weight of a batch's statistics in the running ones of a batch norm.
pub const BATCH_NORM_MOMENTUM: f64 = 0.1;

/// Behaviour of a network: batch norm normalises by the batch's statistics and updates the running ones, or uses the
/// running ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Normalises by the statistics of the batch, which the running ones follow.
    Train,
    /// Normalises by the running statistics.
    Eval,
}

/// Spatial mean, `[B, C, H, W]` to `[B, C]`; a view where there is only one position.
pub fn spatial_mean(x: &Tensor) -> Result<Tensor, TchError> {
    let (batch, channels, height, width) = x.size4()?;
    if height * width == 1 {
        return x.f_view([batch, channels]);
    }
    x.f_mean_dim([2_i64, 3].as_slice(), false, None)
}

/// A 2×2 max pool with stride 2 by libtorch's kernel; a last odd row or column is left out.
pub fn max_pool_2x2(x: &Tensor) -> Result<Tensor, TchError> {
    x.f_max_pool2d(2, 2, 0, 1, false)
}

/// A linear map of the last dimension, with a bias or without.
#[derive(Debug)]
pub struct Linear {
    /// `[outputs, inputs]`, f32, on the device of its [`ParamSet`].
    pub weight: Tensor,
    /// `[outputs]`, f32, on the device of its [`ParamSet`].
    pub bias: Option<Tensor>,
}

impl Linear {
    /// Adds `{name}.weight`, `[outputs, inputs]`, and, if `bias` has initial values, `{name}.bias`.
    ///
    /// # Errors
    /// libtorch's, when memory runs out.
    pub fn new(
        params: &mut ParamSet,
        name: &str,
        [inputs, outputs]: [i64; 2],
        weight: Init,
        bias: Option<Init>,
    ) -> Result<Self, TchError> {
        let weight = params.add(format!("{name}.weight"), &[outputs, inputs], weight)?;
        let bias = bias.map(|bias| params.add(format!("{name}.bias"), &[outputs], bias));
        Ok(Self {
            weight,
            bias: bias.transpose()?,
        })
    }

    /// Further handles of the same tensors.
    pub fn share(&self) -> Self {
        Self {
            weight: self.weight.shallow_clone(),
            bias: self.bias.as_ref().map(Tensor::shallow_clone),
        }
    }

    /// `[.., inputs]` to `[.., outputs]`.
    ///
    /// # Errors
    /// libtorch's, where shapes do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_linear(&self.weight, self.bias.as_ref())
    }
}

/// Layer norm over the last dimension with a factor and an offset a channel (Ba et al. 2016, arXiv:1607.06450).
#[derive(Debug)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
}

impl LayerNorm {
    /// Adds `{name}.weight`, which starts at 1, and `{name}.bias`, at 0.
    ///
    /// # Errors
    /// libtorch's, when memory runs out.
    pub fn new(params: &mut ParamSet, name: &str, dim: i64) -> Result<Self, TchError> {
        Ok(Self {
            weight: params.add(format!("{name}.weight"), &[dim], Init::Constant(1.0))?,
            bias: params.add(format!("{name}.bias"), &[dim], Init::Constant(0.0))?,
        })
    }

    /// `[.., channels]` to the same.
    ///
    /// # Errors
    /// libtorch's, where shapes do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_layer_norm(self.weight.size(), Some(&self.weight), Some(&self.bias), NORM_EPS, true)
    }
}

/// Up to this many positions of a batch, a matrix product beats oneDNN's 1×1 convolution on CPU, whose fixed cost is
/// some 40 µs forward and 100 µs backward; far beyond, it is several times slower.
const PRODUCT_POSITIONS: i64 = 4096;

/// Returns whether every dense 1×1 convolution must be a matrix product, because oneDNN, as libtorch 2.11 has it, writes
/// beyond the end of a buffer: on x86-64 without AVX-512 in `jit_avx2_1x1_convolution_bwd_weights`, which valgrind shows;
/// with it, in the gradient of the weight at a stride of 2, for three channels of 96x96, which glibc's checks of the heap
/// show.
fn needs_products(stride: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    return stride > 1 || !is_x86_feature_detected!("avx512bw");
    #[cfg(not(target_arch = "x86_64"))]
    return stride > 1;
}

/// A convolution that keeps the channels-last layout, with "same" padding and without a bias. It keeps height and width
/// too, unless it is [strided](Self::strided).
#[derive(Debug)]
pub struct Conv2d {
    /// `[outputs, inputs / groups, kernel, kernel]`.
    pub weight: Tensor,
    padding: i64,
    stride: i64,
    groups: i64,
    /// True if the engine's own kernels compute it where they serve its input.
    own_kernels: bool,
    /// True if they compute a block of it and the layers after it.
    own_block: bool,
    /// True if it is a dense 1×1 convolution on CPU: a matrix product over channels.
    pointwise: bool,
    /// A `[n, 1, 1, 1]` weight and a one-channel input look NCHW to libtorch, whose result would be NCHW then.
    layout_ambiguous: bool,
}

impl Conv2d {
    /// Adds the weight to `params`. `kernel` is odd.
    pub fn new(
        params: &mut ParamSet,
        name: String,
        inputs: i64,
        outputs: i64,
        kernel: i64,
        groups: i64,
    ) -> Result<Self, TchError> {
        let init = Init::FanIn(inputs / groups * kernel * kernel);
        Self::drawn(params, name, [inputs, outputs], kernel, groups, init)
    }

    /// Like [`Self::new`], with weights that start as `init` says.
    pub fn drawn(
        params: &mut ParamSet,
        name: String,
        [inputs, outputs]: [i64; 2],
        kernel: i64,
        groups: i64,
        init: Init,
    ) -> Result<Self, TchError> {
        let own_kernels = params.backend().uses_own_kernels()
            && (groups == 1 || groups == inputs && inputs == outputs)
            && serves_convolution(inputs, outputs, kernel, groups > 1);
        Ok(Self {
            weight: params.add(name, &[outputs, inputs / groups, kernel, kernel], init)?,
            padding: kernel / 2,
            stride: 1,
            groups,
            own_kernels,
            own_block: own_kernels && groups == 1,
            pointwise: kernel == 1 && groups == 1 && params.device() == Device::Cpu,
            layout_ambiguous: kernel == 1 && inputs == 1,
        })
    }

    /// The same convolution at every `stride`-th row and column: height and width shrink to ⌈side/stride⌉.
    pub fn strided(self, stride: i64) -> Self {
        let size = self.weight.size();
        Self {
            stride,
            own_kernels: self.own_kernels && stride == 1,
            own_block: self.own_block && serves_block(size[1], size[0], size[2], stride),
            ..self
        }
    }

    /// The same convolution with another weight of the same shape.
    pub fn with_weight(&self, weight: Tensor) -> Self {
        Self { weight, ..*self }
    }

    /// `[B, inputs, H, W]` to `[B, outputs, ⌈H/stride⌉, ⌈W/stride⌉]`.
    pub fn forward(&self, x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor, TchError> {
        if bias.is_none() && self.uses_own_kernels(x) {
            return conv_layer(x, &self.weight, None, Silu::default(), None);
        }
        self.by_libtorch(x, bias)
    }

    /// Returns whether the engine's own kernels compute this convolution of `x`.
    pub fn uses_own_kernels(&self, x: &Tensor) -> bool {
        self.own_kernels && is_served(x)
    }

    /// Returns whether the engine's own kernels compute a block of this convolution of `x` and the layers after it.
    pub fn uses_own_block(&self, x: &Tensor) -> bool {
        self.own_block && is_served(x)
    }

    /// Rows and columns from one output to the next.
    pub const fn stride(&self) -> i64 {
        self.stride
    }

    fn by_libtorch(&self, x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor, TchError> {
        if !self.pointwise && !self.layout_ambiguous {
            return self.convolve(x, bias);
        }
        let (batch, channels, height, width) = x.size4()?;
        if self.pointwise && (batch * height * width <= PRODUCT_POSITIONS || needs_products(self.stride)) {
            let every = |x: &Tensor, dimension| x.f_slice(dimension, None, None, self.stride);
            let strided = (self.stride > 1).then(|| every(&every(x, 2)?, 3)).transpose()?;
            return strided
                .as_ref()
                .unwrap_or(x)
                .f_permute([0, 2, 3, 1])?
                .f_linear(&self.weight.f_view([-1, channels])?, bias)?
                .f_permute([0, 3, 1, 2]);
        }
        if self.layout_ambiguous {
            let nhwc = x.f_view([batch, height, width, 1])?;
            return self.convolve(&nhwc.f_permute([0, 3, 1, 2])?, bias);
        }
        self.convolve(x, bias)
    }

    fn convolve(&self, x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor, TchError> {
        x.f_conv2d(&self.weight, bias, self.stride, self.padding, 1, self.groups)
    }
}

#[cfg(test)]
mod tests;
