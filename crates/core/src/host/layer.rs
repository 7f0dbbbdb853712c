//! A layer of a host, as designed and as built: the unit of its line.
//!
//! A design is plain data: it says what a layer makes of features, how many parameters it has and what it costs. Building
//! it adds its tensors to the host's parameters, in order, and keeps handles of them.

use tch::Tensor;

use super::HostError;
use crate::graph::LayerGraph;
use crate::nn::{Mode, ParamSet, max_pool_2x2};

/// The shape of features, without the number of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Channels.
    pub channels: i64,
    /// Height and width, or the tokens of a text.
    pub side: i64,
}

impl Features {
    /// Height times width of an image.
    pub const fn positions(self) -> i64 {
        self.side.saturating_mul(self.side)
    }
}

/// A layer before it is built. `examples/custom_host.rs` defines one.
pub trait LayerDesign: Send + Sync {
    /// Shape of the output for features of shape `input`.
    fn output(&self, input: Features) -> Features;

    /// Trainable values, exact.
    fn parameters(&self, input: Features) -> u64;

    /// Multiply-accumulates per sample.
    fn macs(&self, input: Features) -> u64;

    /// Height and width of the smallest features that a batch norm of the layer normalises. `None` without batch norm.
    fn batch_norm_side(&self, _input: Features) -> Option<i64> {
        None
    }

    /// The layer in the words in which networks are exported. By default there are none for it.
    fn graph(&self, _input: Features) -> LayerGraph {
        LayerGraph::Custom
    }

    /// Adds the layer's tensors to `params`, under names that begin with `name` and a dot.
    ///
    /// # Errors
    /// [`HostError::Torch`] if the device refuses.
    fn build(&self, input: Features, name: &str, params: &mut ParamSet) -> Result<Box<dyn Layer>, HostError>;
}

/// A layer with its weights. It maps `[B, channels, H, W]`, channels-last in memory, to the same layout with the shape of its
/// output. A head's output is `[B, classes]`. Layers for texts map `[B, T, channels]` in the same way, and the first of them
/// reads token ids `[B, T]`. Their output at position t depends only on positions up to t.
///
/// Laws: in [`Mode::Eval`] samples do not influence each other and nothing is written; `x` is never written to.
pub trait Layer: Send {
    /// Output of the layer.
    ///
    /// # Errors
    /// [`HostError::Torch`] where shapes do not fit.
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor, HostError>;

    /// Runs the layer and the 2×2 max pool after it, for layers that compute both in one pass.
    ///
    /// # Errors
    /// As [`Self::forward`].
    fn forward_pooled(&self, x: &Tensor, mode: Mode) -> Result<Tensor, HostError> {
        Ok(max_pool_2x2(&self.forward(x, mode)?)?)
    }

    /// Output of the layer in [`Mode::Eval`], exact up to rounding, by what was folded at the last [`Self::refill`]: what
    /// validation runs. The plain layer unless it has something to fold.
    ///
    /// # Errors
    /// As [`Self::forward`].
    fn evaluate(&self, x: &Tensor) -> Result<Tensor, HostError> {
        self.forward(x, Mode::Eval)
    }

    /// Runs [`Self::evaluate`] and the 2×2 max pool after it.
    ///
    /// # Errors
    /// As [`Self::forward`].
    fn evaluate_pooled(&self, x: &Tensor) -> Result<Tensor, HostError> {
        Ok(max_pool_2x2(&self.evaluate(x)?)?)
    }

    /// Folds constants, such as batch norm, into current weights, in place.
    ///
    /// # Errors
    /// [`HostError::Torch`] if there is not enough memory.
    fn refill(&mut self) -> Result<(), HostError> {
        Ok(())
    }
}

/// A layer that training leaves unchanged. Its norms go by their running statistics in training, too.
pub(super) struct Frozen(pub Box<dyn Layer>);

impl Layer for Frozen {
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor, HostError> {
        self.0.forward(x, Mode::Eval)
    }

    fn forward_pooled(&self, x: &Tensor, _: Mode) -> Result<Tensor, HostError> {
        self.0.forward_pooled(x, Mode::Eval)
    }

    fn evaluate(&self, x: &Tensor) -> Result<Tensor, HostError> {
        self.0.evaluate(x)
    }

    fn evaluate_pooled(&self, x: &Tensor) -> Result<Tensor, HostError> {
        self.0.evaluate_pooled(x)
    }

    fn refill(&mut self) -> Result<(), HostError> {
        self.0.refill()
    }
}
