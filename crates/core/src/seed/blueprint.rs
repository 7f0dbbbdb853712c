//! Kinds of seeds: a plugin adds one by implementing [`Blueprint`] and [`SeedModule`] and registering it.

use tch::{TchError, Tensor};

use super::{BlendError, fit_residual};
use crate::graph::ModuleGraph;
use crate::growth::Topology;
use crate::kernels::Onto;
use crate::nn::{Mode, ParamSet};
use crate::random::RunRng;
use crate::torch::{Backend, TorchError};

/// A module that grows in a slot, defined by its residual: the slot's full output is `x + δ(x)`. `x` is
/// `[batch, channels, height, width]` for images and `[batch, tokens, channels]` for texts, f32 or the kind of autocast, on the
/// env's device; so is δ(x).
///
/// Laws: δ is exactly 0 at initialisation; every parameter receives gradient within three plain SGD steps; no normalisation
/// follows a zero-initialised layer; shape and dtype are kept at any resolution or length; no running statistics; `x` is
/// never written to. The output of a module for texts at a position depends only on positions up to it.
pub trait SeedModule: Send {
    /// `None` means identically zero.
    fn delta(&self, x: &Tensor, mode: Mode) -> Result<Option<Tensor>, TchError>;

    /// The features that δ(x) has entered as `onto` says; `None` means that they stay unchanged. For modules that can do
    /// it in one pass, without δ in between.
    ///
    /// # Errors
    /// [`BlendError`] if δ does not fit the features.
    fn delta_onto(&self, x: &Tensor, onto: Onto, mode: Mode) -> Result<Option<Tensor>, BlendError> {
        let Some(delta) = self.delta(x, mode)? else {
            return Ok(None);
        };
        Ok(Some(onto.enter(&fit_residual(delta, onto.features())?)?))
    }

    /// Every tensor of the module.
    fn params(&self) -> &ParamSet;

    /// Multiply-accumulates per sample over `positions` spatial positions, or tokens; by default those of a module that
    /// applies each of its matrices and kernels once at every position.
    fn macs(&self, positions: u64) -> u64 {
        let weights = self.params().trainable().iter().filter(|param| param.tensor.dim() > 1);
        weights.map(|weight| weight.tensor.numel() as u64).sum::<u64>() * positions
    }
}

/// A kind of seed.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use std::sync::Arc;
///
/// use simic_engine::prelude::{Backend, Blueprint, BlueprintError, BlueprintRegistry, Init, Mode, ParamSet, RunRng, SeedModule};
/// use simic_engine::extend::HostSyncCounter;
/// use tch::{TchError, Tensor};
///
/// /// Scales each channel: δ(x) = w·x with w starting at 0.
/// struct ChannelScale;
/// struct ChannelScaleModule { weight: Tensor, params: ParamSet }
///
/// impl SeedModule for ChannelScaleModule {
///     fn delta(&self, x: &Tensor, _mode: Mode) -> Result<Option<Tensor>, TchError> {
///         Ok(Some(x.f_mul(&self.weight)?))
///     }
///     fn params(&self) -> &ParamSet { &self.params }
///     fn macs(&self, positions: u64) -> u64 { self.params.count() * positions }
/// }
///
/// impl Blueprint for ChannelScale {
///     fn id(&self) -> &'static str { "channel_scale" }
///     fn summary(&self) -> &'static str { "one learned factor a channel" }
///     fn param_count(&self, dim: i64) -> u64 { dim as u64 }
///     fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
///         let mut params = ParamSet::new(backend);
///         let weight = params.add("weight", &[dim, 1, 1], Init::Constant(0.0))?;
///         params.initialise(rng)?;
///         Ok(Box::new(ChannelScaleModule { weight, params }))
///     }
/// }
///
/// let mut registry = BlueprintRegistry::default();
/// registry.register(Arc::new(ChannelScale));
/// registry.check(&[8, 16], Backend::CPU, &HostSyncCounter::default())?;
/// # Ok::<(), BlueprintError>(())
/// ```
pub trait Blueprint: Send + Sync {
    /// The name in scenarios and events.
    fn id(&self) -> &'static str;

    /// The features that its modules read.
    fn topology(&self) -> Topology {
        Topology::Image
    }

    /// One line for `simic-engine list blueprints`.
    fn summary(&self) -> &'static str;

    /// Trainable values of a module of this width, exact, without building it.
    fn param_count(&self, dim: i64) -> u64;

    /// A module of this width in the words in which networks are exported. By default there are none for it, and a network
    /// with such a seed is kept but cannot be written as PyTorch.
    fn graph(&self, _dim: i64) -> ModuleGraph {
        ModuleGraph::Custom
    }

    /// Builds a module for `dim` channels, its weights drawn from `rng` in parameter order.
    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError>;
}

/// Most indices that there can be: the bits of one word of an action mask.
pub const MAX_BLUEPRINTS: usize = u64::BITS as usize;

/// The reason why a blueprint could not be found, registered or built. If a seed module breaks its contract, the run is refused
/// before anything is trained.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum BlueprintError {
    /// Code made a command with an index that is not registered; the message lists those that are.
    #[error("there is no blueprint with index {index}; available are {available}")]
    UnknownIndex { index: usize, available: String },
    /// A module that breaks the laws of [`SeedModule`], or cannot be built at all: `why` says which law, for which width.
    #[error("blueprint `{id}` cannot grow in a slot of {dim} channels: {why}")]
    Unfit { id: &'static str, dim: i64, why: String },
    /// libtorch failed while the module was built or tried.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl From<TchError> for BlueprintError {
    fn from(error: TchError) -> Self {
        Self::Torch(error.into())
    }
}
