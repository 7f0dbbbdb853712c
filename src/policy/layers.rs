//! The few layers that policies are made of.

use tch::Tensor;

use super::parameters::PolicyParams;
use super::trainable::{ParamGroup, ValueOutput};
use crate::torch::NoGrad;

/// Gain of hidden layers: keeps the scale of activations through a ReLU.
pub const HIDDEN_GAIN: f64 = std::f64::consts::SQRT_2;

/// `x·Wᵀ + b`.
#[derive(Debug)]
pub struct Linear {
    /// `[outputs, inputs]`.
    pub weight: Tensor,
    /// `[outputs]`.
    pub bias: Tensor,
}

impl Linear {
    /// Orthogonal weights of the given gain, no bias.
    pub fn new(params: &mut PolicyParams, group: ParamGroup, name: &str, [from, to]: [i64; 2], gain: f64) -> Self {
        Self {
            weight: params.orthogonal(&format!("{name}.weight"), group, [to, from], gain),
            bias: params.constant(&format!("{name}.bias"), group, to, 0.0),
        }
    }

    /// `[.., inputs]` to `[.., outputs]`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        x.linear(&self.weight, Some(&self.bias))
    }
}

impl From<&Linear> for ValueOutput {
    fn from(layer: &Linear) -> Self {
        Self {
            weight: layer.weight.shallow_clone(),
            bias: layer.bias.shallow_clone(),
        }
    }
}

/// Layer normalisation over the last dimension, with scale and shift.
#[derive(Debug)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
}

impl LayerNorm {
    pub fn new(params: &mut PolicyParams, group: ParamGroup, name: &str, width: i64) -> Self {
        Self {
            weight: params.constant(&format!("{name}.weight"), group, width, 1.0),
            bias: params.constant(&format!("{name}.bias"), group, width, 0.0),
        }
    }

    pub fn forward(&self, x: &Tensor) -> Tensor {
        x.layer_norm(self.weight.size(), Some(&self.weight), Some(&self.bias), 1e-5, true)
    }
}

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
    group: ParamGroup,
    width: i64,
    layers: Vec<Layer>,
}

impl Stack {
    /// No layers yet; `width`: of the input.
    pub fn new(group: ParamGroup, name: impl Into<String>, width: i64) -> Self {
        Self {
            name: name.into(),
            group,
            width,
            layers: Vec::new(),
        }
    }

    /// The name of a layer that comes next.
    pub fn next_name(&self) -> String {
        format!("{}.{}", self.name, self.layers.len())
    }

    /// Appends a linear layer with `width` outputs, orthogonal weights of the given gain and a bias of 0.
    pub fn linear(mut self, params: &mut PolicyParams, width: i64, gain: f64) -> Self {
        let layer = Linear::new(params, self.group, &self.next_name(), [self.width, width], gain);
        self.layers.push(Layer::Linear(layer));
        self.width = width;
        self
    }

    /// Starts the newest linear layer with this bias.
    pub fn biased(self, bias: &[f64]) -> Self {
        if let Some(Layer::Linear(linear)) = self.layers.last() {
            let _no_grad = NoGrad::new();
            linear.bias.shallow_clone().copy_(&Tensor::from_slice(bias));
        }
        self
    }

    /// Appends a layer normalisation of the newest layer's outputs.
    pub fn layer_norm(mut self, params: &mut PolicyParams) -> Self {
        let layer = LayerNorm::new(params, self.group, &self.next_name(), self.width);
        self.layers.push(Layer::LayerNorm(layer));
        self
    }

    /// Appends a ReLU.
    pub fn relu(mut self) -> Self {
        self.layers.push(Layer::Relu);
        self
    }

    /// All layers in order: `[.., inputs]` to `[.., outputs of the last]`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        self.layers.iter().fold(x.shallow_clone(), |x, layer| match layer {
            Layer::Linear(linear) => linear.forward(&x),
            Layer::LayerNorm(norm) => norm.forward(&x),
            Layer::Relu => x.relu(),
        })
    }
}
