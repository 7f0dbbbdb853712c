//! Host networks: pure backbones with injection points (`docs/reference/hosts.md`).
//!
//! A host is a line of ops. A caller runs a range of ops, so no other code knows how the network is built:
//! the grafted forward of `env` splits the line where seeds contribute in training, the coalition tree of
//! `validation` where configurations differ. A [`HostDesign`] makes a [`HostPlan`], plain data with parameters,
//! costs and slots; the plan builds the [`Host`].

mod layer;
mod layers;
mod layout;
mod line;
mod plan;
mod design;
mod families;

use std::ops::Range;

use tch::{TchError, Tensor};

pub use design::HostDesign;
pub(crate) use families::presets;
pub use families::{reading, widened};
pub use layer::{Features, Layer, LayerDesign};
pub(crate) use layers::layer_of;
pub use layers::{Conv, Embedding, Head, MaxPool, NormRelu, ResidualBlock, TextBlock, TextHead};
pub use layout::SlotLayout;
pub use plan::HostPlan;

pub use crate::growth::InjectionSpec;
use crate::nn::{Mode, ParamSet};
use crate::random::RunRng;
use crate::schema::NameError;
use crate::torch::{Backend, TorchError};

/// Builds a host with freshly drawn weights.
///
/// # Errors
/// [`HostError::Broken`] for a plan that has a fault, [`HostError::Torch`] if the device refuses.
pub fn build(
    design: &dyn HostDesign,
    classes: i64,
    rng: &mut RunRng,
    backend: Backend,
) -> Result<Box<dyn Host>, HostError> {
    design.plan(classes).build(rng, backend)
}

/// Cost of one op per sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpCost {
    /// Multiply-accumulates.
    pub macs: u64,
    /// Spatial positions of the op's output.
    pub positions: u64,
    /// Training leaves its weights unchanged.
    pub is_frozen: bool,
}

/// The reason why a host could not be built or run. A plan with a fault is refused before anything is trained.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum HostError {
    /// A caller asks for ops that the line does not have: they are numbered from 0 to [`Host::num_ops`].
    #[error("ops {start}..{end} were requested from a host with {ops} ops")]
    BadRange { start: usize, end: usize, ops: usize },
    /// `task.host` names a host that is not registered: add the plugin that registers it.
    #[error(transparent)]
    Name(#[from] NameError),
    /// An evaluation asks for a host as large as the grown one, of a host that comes in one size: leave that opponent out.
    #[error("the host `{0}` has no wider form; only the families cnn, resnet and vgg and their presets have one")]
    NoWider(String),
    /// The data's `block` is larger than the host's: enlarge the host's.
    #[error("a text of {tokens} tokens was given to a host that reads {block} at a time")]
    TextTooLong { tokens: i64, block: i64 },
    /// A plan with a fault, or a layer whose shape or number of parameters is not what its
    /// [`LayerDesign`] says: correct the design.
    #[error("the host cannot be built: {0}")]
    Broken(String),
    /// libtorch failed.
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

    /// Sorted by `order`. No two share a boundary.
    fn injection_specs(&self) -> &[InjectionSpec];

    /// One entry an op.
    fn op_costs(&self) -> &[OpCost];

    /// Computes the features after `ops` from features `x` before them: images `[batch, channels, height, width]`, texts
    /// `[batch, tokens, channels]`, f32 or the kind of autocast, on the env's device. Before the first op these are the samples
    /// themselves, after the last the logits.
    fn run(&self, ops: Range<usize>, x: &Tensor, mode: Mode) -> Result<Tensor, HostError>;

    /// Every tensor of the host. Their storage stays the same for the host's whole life.
    fn params(&self) -> &ParamSet;

    /// Draws new weights and resets the buffers, all in place.
    fn reinitialise(&mut self, rng: &mut RunRng) -> Result<(), HostError>;

    /// [`Self::run`] in [`Mode::Eval`], exact up to rounding, by what was folded at the last [`Self::refill`]: what validation
    /// runs. In the same shapes: images `[batch, channels, height, width]`, texts `[batch, tokens, channels]`.
    fn evaluate(&self, ops: Range<usize>, x: &Tensor) -> Result<Tensor, HostError>;

    /// Folds constants, such as batch norm, into the current weights: once per step, after its last training batch.
    fn refill(&mut self) -> Result<(), HostError>;
}
