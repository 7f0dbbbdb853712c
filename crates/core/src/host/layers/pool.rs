//! Max pools other than the 2×2 ones between layers.

use tch::Tensor;

use crate::graph::LayerGraph;
use crate::host::{Features, HostError, Layer, LayerDesign};
use crate::nn::{Mode, ParamSet};

/// The largest of the values under a square window, which begins `padding` rows and columns outside of the image:
/// `[B, C, H, W]` to `[B, C, H′, W′]` with H′ = ⌊(H + 2·padding − kernel)/stride⌋ + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxPool {
    /// Side of the window, at least 1.
    pub kernel: i64,
    /// At least 1.
    pub stride: i64,
    /// At most half of the kernel.
    pub padding: i64,
}

impl LayerDesign for MaxPool {
    fn output(&self, input: Features) -> Features {
        let room = input.side.saturating_add(2 * self.padding) - self.kernel;
        let side = if room < 0 { 0 } else { room / self.stride + 1 };
        Features { side, ..input }
    }

    fn parameters(&self, _: Features) -> u64 {
        0
    }

    fn macs(&self, _: Features) -> u64 {
        0
    }

    fn graph(&self, _: Features) -> LayerGraph {
        LayerGraph::MaxPool {
            kernel: self.kernel,
            stride: self.stride,
            padding: self.padding,
        }
    }

    fn build(&self, _: Features, _: &str, _: &mut ParamSet) -> Result<Box<dyn Layer>, HostError> {
        Ok(Box::new(*self))
    }
}

impl Layer for MaxPool {
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor, HostError> {
        Ok(x.f_max_pool2d(self.kernel, self.stride, self.padding, 1, false)?)
    }
}
