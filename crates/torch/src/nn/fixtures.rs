//! What the tests of hosts, seeds and validation share.

use tch::Tensor;

use super::Param;
use crate::torch::NoGrad;

/// Largest magnitude in the tensor.
pub fn largest(tensor: &Tensor) -> f64 {
    f64::try_from(tensor.abs().max()).unwrap()
}

/// Moves parameters away from where they started, as training would.
pub fn perturb<'a>(params: impl IntoIterator<Item = &'a Param>) {
    let _no_grad = NoGrad::new();
    for param in params {
        let _ = param.tensor.shallow_clone().g_add_(&(param.tensor.randn_like() * 0.3));
    }
}
