//! A convolution that keeps height, width and the channels-last layout; shared by hosts and seeds.

use tch::{TchError, Tensor};

use super::{Init, ParamSet};

/// Stride 1, "same" padding, no bias of its own.
#[derive(Debug)]
pub struct Conv2d {
    pub weight: Tensor,
    padding: i64,
    groups: i64,
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
        let group_inputs = inputs / groups;
        let fan_in = Init::FanIn(group_inputs * kernel * kernel);
        Ok(Self {
            weight: params.add(name, &[outputs, group_inputs, kernel, kernel], fan_in)?,
            padding: kernel / 2,
            groups,
            layout_ambiguous: inputs == 1 && kernel == 1,
        })
    }

    /// The same convolution with another weight of the same shape.
    pub fn with_weight(&self, weight: Tensor) -> Self {
        Self { weight, ..*self }
    }

    pub fn forward(&self, x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor, TchError> {
        let convolve = |x: &Tensor| x.f_conv2d(&self.weight, bias, 1, self.padding, 1, self.groups);
        if !self.layout_ambiguous {
            return convolve(x);
        }
        let (batch, _, height, width) = x.size4()?;
        convolve(&x.f_view([batch, height, width, 1])?.f_permute([0, 3, 1, 2])?)
    }
}
