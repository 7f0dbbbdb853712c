//! What the tests of the room share.

use tch::Tensor;

/// Largest magnitude in the tensor.
pub fn largest(tensor: &Tensor) -> f64 {
    f64::try_from(tensor.abs().max()).unwrap()
}
