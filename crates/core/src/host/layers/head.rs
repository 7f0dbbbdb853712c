//! The head of an image classifier.

use tch::Tensor;

use crate::graph::LayerGraph;
use crate::host::{Features, HostError, Layer, LayerDesign};
use crate::kernels::{self, is_served};
use crate::nn::{Init, Mode, ParamSet, spatial_mean};
use crate::torch::Backend;

/// Mean over positions, then a linear map with bias to logits: `[B, C, H, W]` to `[B, classes]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// At least 2.
    pub classes: i64,
}

impl LayerDesign for Head {
    fn output(&self, _: Features) -> Features {
        Features {
            channels: self.classes,
            side: 1,
        }
    }

    fn parameters(&self, input: Features) -> u64 {
        ((input.channels + 1) * self.classes) as u64
    }

    fn macs(&self, input: Features) -> u64 {
        (input.channels * self.classes) as u64
    }

    fn graph(&self, input: Features) -> LayerGraph {
        LayerGraph::Head {
            inputs: input.channels,
            classes: self.classes,
        }
    }

    fn build(&self, input: Features, name: &str, params: &mut ParamSet) -> Result<Box<dyn Layer>, HostError> {
        let inputs = input.channels;
        Ok(Box::new(HeadLayer {
            weight: params.add(format!("{name}.weight"), &[self.classes, inputs], Init::FanIn(inputs))?,
            bias: params.add(format!("{name}.bias"), &[self.classes], Init::FanIn(inputs))?,
            backend: params.backend(),
        }))
    }
}

struct HeadLayer {
    weight: Tensor,
    bias: Tensor,
    backend: Backend,
}

impl Layer for HeadLayer {
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor, HostError> {
        if self.backend.uses_own_kernels() && is_served(x) {
            return Ok(kernels::head(x, &self.weight, &self.bias)?);
        }
        Ok(spatial_mean(x)?.f_linear(&self.weight, Some(&self.bias))?)
    }
}
