//! Helpers of the module's tests.

use tch::Tensor;

use crate::torch::{HostSyncCounter, read_f64};

/// Largest magnitude in the tensor.
pub fn largest(tensor: &Tensor) -> f64 {
    f64::try_from(tensor.abs().max()).unwrap()
}

pub fn read(tensor: &Tensor) -> Vec<f64> {
    read_f64(tensor, &HostSyncCounter::default()).expect("read")
}
