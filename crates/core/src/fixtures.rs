//! Helpers that tests of several modules share: tensors that are changed, numbers that are compared.

use tch::{Kind, Tensor};

use crate::nn::Param;
use crate::torch::NoGrad;
use crate::torch::fixtures::test_device;

/// Largest magnitude in the tensor.
pub fn largest(tensor: &Tensor) -> f64 {
    f64::try_from(tensor.abs().max()).unwrap()
}

/// As many numbers as expected, each no further away than `tolerance`.
#[track_caller]
pub fn assert_close(actual: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len());
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() < tolerance, "{actual:?} is not {expected:?}");
    }
}

/// Normal noise, channels innermost in memory.
pub fn images(batch: i64, channels: i64, side: i64) -> Tensor {
    let nhwc = Tensor::randn([batch, side, side, channels], (Kind::Float, test_device()));
    nhwc.permute([0, 3, 1, 2])
}

/// Moves parameters away from where they started, as training would.
pub fn perturb<'a>(params: impl IntoIterator<Item = &'a Param>) {
    let _no_grad = NoGrad::new();
    for param in params {
        let _ = param.tensor.shallow_clone().g_add_(&(param.tensor.randn_like() * 0.3));
    }
}
