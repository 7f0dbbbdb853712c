//! Host networks: pure backbones with injection points (spec 01 §1), and the forward of a host with seeds grafted on.
//!
//! A host is a line of ops. Whoever runs one passes a range of ops, so nothing else knows how the network is built:
//! [`graft`] splits the line where seeds contribute in training, the coalition tree of `validation` where
//! configurations differ.

mod cnn;
#[cfg(test)]
mod cnn_tests;
mod conv;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod graft;
#[cfg(test)]
mod graft_tests;
mod layout;
mod params;

use std::ops::Range;

use tch::{TchError, Tensor};

use crate::random::RunRng;
use crate::torch::TorchError;

pub use cnn::*;
pub use conv::Conv2d;
pub use layout::*;
pub use params::*;

/// Family of a network; decides which blueprints fit its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topology {
    /// Features are `[B, C, H, W]`.
    Cnn,
}

/// Behaviour of batch norm: batch statistics, which also update the running ones, or the running statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Train,
    Eval,
}

/// What one op costs per sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpCost {
    /// Multiply-accumulates.
    pub macs: u64,
    /// Spatial positions of the op's output.
    pub positions: u64,
}

/// Why a host could not be built or run.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("ops {start}..{end} were asked of a host with {ops} ops")]
    BadRange { start: usize, end: usize, ops: usize },
    #[error("the host's `{field}` is {value}: {requirement}")]
    BadSpec {
        field: &'static str,
        value: i64,
        requirement: &'static str,
    },
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl From<TchError> for HostError {
    fn from(error: TchError) -> Self {
        Self::Torch(error.into())
    }
}

/// A backbone as a line of ops `0..num_ops()`, the last of which turns features into logits (spec 01 §1.1).
///
/// Laws: running all ops is the plain forward; in [`Mode::Eval`], `i..k` equals `i..j` followed by `j..k` bit for bit;
/// an empty range is the identity; a range outside the line is [`HostError::BadRange`].
pub trait Host: Send {
    fn topology(&self) -> Topology;

    /// At least 2.
    fn num_ops(&self) -> usize;

    /// Sorted by `order`; no two share a boundary.
    fn injection_specs(&self) -> &[InjectionSpec];

    /// One entry an op.
    fn op_costs(&self) -> &[OpCost];

    fn run(&self, ops: Range<usize>, x: &Tensor, mode: Mode) -> Result<Tensor, HostError>;

    fn params(&self) -> &ParamSet;

    /// Draws new weights and resets the buffers, all in place.
    fn reinitialise(&mut self, rng: &mut RunRng) -> Result<(), HostError>;
}

/// Refuses a range that is not part of a line of `num_ops` ops.
pub fn check_range(ops: &Range<usize>, num_ops: usize) -> Result<(), HostError> {
    if ops.start > ops.end || ops.end > num_ops {
        return Err(HostError::BadRange {
            start: ops.start,
            end: ops.end,
            ops: num_ops,
        });
    }
    Ok(())
}
