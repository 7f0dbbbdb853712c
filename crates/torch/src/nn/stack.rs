//! Layers one after another.

use tch::{TchError, Tensor};

use super::layers::{LayerNorm, Linear};
use super::params::{Init, ParamSet};
use crate::torch::NoGrad;

/// A step of a [`Stack`].
#[derive(Debug)]
enum Layer {
    Linear(Linear),
    LayerNorm(LayerNorm),
    Relu,
}

/// Layers one after another, named by their position as PyTorch's `Sequential` names them.
#[derive(Debug)]
pub struct Stack {
    name: String,
    width: i64,
    layers: Vec<Layer>,
}

/// Its methods fail as libtorch does: when memory runs out, or where shapes do not fit.
impl Stack {
    /// A stack without layers; `width`: of the input.
    pub fn new(name: impl Into<String>, width: i64) -> Self {
        Self {
            name: name.into(),
            width,
            layers: Vec::new(),
        }
    }

    /// The name of the next layer.
    pub fn next_name(&self) -> String {
        format!("{}.{}", self.name, self.layers.len())
    }

    /// Appends a linear layer with `width` outputs and a bias that starts at 0.
    pub fn linear(mut self, params: &mut ParamSet, width: i64, weight: Init) -> Result<Self, TchError> {
        let (name, bias) = (self.next_name(), Some(Init::Constant(0.0)));
        let layer = Linear::new(params, &name, [self.width, width], weight, bias)?;
        self.layers.push(Layer::Linear(layer));
        self.width = width;
        Ok(self)
    }

    /// Appends a layer normalisation of the newest layer's outputs.
    pub fn layer_norm(mut self, params: &mut ParamSet) -> Result<Self, TchError> {
        let layer = LayerNorm::new(params, &self.next_name(), self.width)?;
        self.layers.push(Layer::LayerNorm(layer));
        Ok(self)
    }

    /// Appends a ReLU.
    pub fn relu(mut self) -> Self {
        self.layers.push(Layer::Relu);
        self
    }

    /// Gives the newest layer, a linear one, this bias.
    pub fn set_bias(&self, values: &[f64]) -> Result<(), TchError> {
        let _no_grad = NoGrad::new();
        match self.layers.last() {
            Some(Layer::Linear(Linear { bias: Some(bias), .. })) => {
                bias.shallow_clone().f_copy_(&Tensor::f_from_slice(values)?)
            }
            _ => Ok(()),
        }
    }

    /// Runs all layers in order: `[.., inputs]` to `[.., outputs of the last]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        self.layers.iter().try_fold(x.shallow_clone(), |x, layer| match layer {
            Layer::Linear(linear) => linear.forward(&x),
            Layer::LayerNorm(norm) => norm.forward(&x),
            Layer::Relu => x.f_relu(),
        })
    }
}
