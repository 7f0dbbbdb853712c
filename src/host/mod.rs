//! Host networks: pure backbones with injection points (`docs/reference/hosts-and-seeds.md`).
//!
//! A host is a line of ops. Whoever runs one passes a range of ops, so nothing else knows how the network is built:
//! the grafted forward of `env` splits the line where seeds contribute in training, the coalition tree of
//! `validation` where configurations differ.

mod cnn;
mod layout;

use std::ops::Range;

use tch::{TchError, Tensor};

pub use cnn::injection_specs;
pub use layout::{InjectionSpec, LayoutError, SlotLayout};

use crate::random::RunRng;
use crate::scenario::CnnSpec;
use crate::torch::{Backend, Mode, ParamSet, TorchError};

/// Builds the host of a task, whose shape the check of its scenario has found possible, with freshly drawn weights.
///
/// # Errors
/// [`HostError::Torch`] if the device refuses.
pub fn build(spec: &CnnSpec, classes: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn Host>, HostError> {
    Ok(Box::new(cnn::CnnHost::new(spec, classes, rng, backend)?))
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
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum HostError {
    #[error("ops {start}..{end} were asked of a host with {ops} ops")]
    BadRange { start: usize, end: usize, ops: usize },
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl From<TchError> for HostError {
    fn from(error: TchError) -> Self {
        Self::Torch(error.into())
    }
}

/// A backbone as a line of ops `0..num_ops()`, the last of which turns features into logits.
///
/// Laws: running all ops is the plain forward; in [`Mode::Eval`], `i..k` equals `i..j` followed by `j..k` bit for bit;
/// an empty range is the identity; a range outside the line is [`HostError::BadRange`].
pub trait Host: Send {
    /// At least 2.
    fn num_ops(&self) -> usize;

    /// Sorted by `order`; no two share a boundary.
    fn injection_specs(&self) -> &[InjectionSpec];

    /// One entry an op.
    fn op_costs(&self) -> &[OpCost];

    /// Features behind `ops` for features `x` in front of them.
    fn run(&self, ops: Range<usize>, x: &Tensor, mode: Mode) -> Result<Tensor, HostError>;

    /// Every tensor of the host; their storage stays the same for the host's whole life.
    fn params(&self) -> &ParamSet;

    /// Draws new weights and resets the buffers, all in place.
    fn reinitialise(&mut self, rng: &mut RunRng) -> Result<(), HostError>;

    /// The host as validation runs it. Holds handles on the host's own tensors, which are only ever written in place.
    fn fold(&self) -> Result<Box<dyn FoldedHost>, HostError>;
}

/// A host in [`Mode::Eval`] with whatever is constant there worked into its weights, exact up to rounding. The laws of
/// [`Host`] hold.
pub trait FoldedHost: Send {
    /// That of the host.
    fn num_ops(&self) -> usize;

    /// One entry an op.
    fn op_costs(&self) -> &[OpCost];

    /// Features behind `ops` for features `x` in front of them.
    fn evaluate(&self, ops: Range<usize>, x: &Tensor) -> Result<Tensor, HostError>;

    /// Takes over the host's present weights and statistics: once per step, after its last training batch.
    fn refill(&mut self) -> Result<(), HostError>;
}
