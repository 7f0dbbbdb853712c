//! Blueprints: what can be grown, each under an index that policies and observations use for ever.
//!
//! The registry is filled at start-up and immutable afterwards. A plugin adds a kind of seed by implementing
//! [`Blueprint`] and [`SeedModule`] and registering it; it receives the next free index.

use bevy_ecs::resource::Resource;
use tch::{Kind, TchError, Tensor};

use super::{BlendError, fit_residual};
use crate::random::{Domain, RunRng};
use crate::torch::{Backend, Mode, Onto, ParamSet};
use crate::torch::{HostSyncCounter, NoGrad, TorchError, read_f64};

/// A module that grows in a slot, defined by its residual: the slot's full output is `x + δ(x)`.
///
/// Laws: δ is exactly 0 at birth; every parameter receives gradient within three plain SGD steps; no normalisation
/// follows a zero-initialised layer; shape and dtype are kept at any resolution; no running statistics; `x` is never
/// written to.
pub trait SeedModule: Send {
    /// `None` means identically zero.
    fn delta(&self, x: &Tensor, mode: Mode) -> Result<Option<Tensor>, TchError>;

    /// The features that δ(x) has entered as `onto` says; `None` means that they stay as they are. For modules that can do
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

    /// Multiply-accumulates per sample over `positions` spatial positions.
    fn macs(&self, positions: u64) -> u64;
}

/// A kind of seed.
///
/// ```
/// use simic_engine::torch::{Backend, Init, Mode, ParamSet};
/// use simic_engine::random::RunRng;
/// use simic_engine::seed::{Blueprint, BlueprintError, BlueprintRegistry, SeedModule};
/// use simic_engine::torch::HostSyncCounter;
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
/// assert_eq!(registry.register(Box::new(ChannelScale))?, 13);
/// registry.check(&[8, 16], Backend::CPU, &HostSyncCounter::default())?;
/// # Ok::<(), BlueprintError>(())
/// ```
pub trait Blueprint: Send + Sync {
    /// The name in scenarios and events.
    fn id(&self) -> &'static str;

    /// One line for `simic-engine list blueprints`.
    fn summary(&self) -> &'static str;

    /// Trainable values of a module of this width, exact, without building it.
    fn param_count(&self, dim: i64) -> u64;

    /// Builds a module for `dim` channels, its weights drawn from `rng` in parameter order.
    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError>;
}

/// Why a blueprint could not be found, registered or built.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum BlueprintError {
    #[error("there is no blueprint with index {index}; available are {available}")]
    UnknownIndex { index: usize, available: String },
    #[error("a blueprint `{0}` is registered already; choose another id")]
    Duplicate(&'static str),
    #[error("blueprint `{0}` is one too many: an action mask holds {MAX_BLUEPRINTS}; register fewer")]
    TooMany(&'static str),
    /// A module that breaks the contract of [`SeedModule`], or cannot be built at all.
    #[error("blueprint `{id}` cannot grow in a slot of {dim} channels: {why}")]
    Unfit { id: &'static str, dim: i64, why: String },
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl From<TchError> for BlueprintError {
    fn from(error: TchError) -> Self {
        Self::Torch(error.into())
    }
}

/// First index of blueprints that plugins register; the ones below are fixed.
pub const FIRST_PLUGIN_INDEX: usize = 13;

/// Most indices that there can be: the bits of one word of an action mask.
pub const MAX_BLUEPRINTS: usize = u64::BITS as usize;

/// Width at which error messages order the available blueprints by size.
const LISTING_WIDTH: i64 = 32;

/// All blueprints by index.
#[derive(Resource)]
pub struct BlueprintRegistry {
    /// `None` marks indices that are kept free for later built-in blueprints.
    entries: Vec<Option<Box<dyn Blueprint>>>,
}

impl BlueprintRegistry {
    /// Of built-in blueprints, by index.
    pub(super) fn of(built_in: impl Iterator<Item = Box<dyn Blueprint>>) -> Self {
        let mut entries: Vec<_> = built_in.map(Some).collect();
        entries.resize_with(FIRST_PLUGIN_INDEX, || None);
        Self { entries }
    }

    /// Adds a plugin's blueprint and returns its index.
    ///
    /// # Errors
    /// [`BlueprintError::Duplicate`] if there is a blueprint of this id, [`BlueprintError::TooMany`] if no index is left.
    pub fn register(&mut self, blueprint: Box<dyn Blueprint>) -> Result<usize, BlueprintError> {
        if self.iter().any(|(_, other)| other.id() == blueprint.id()) {
            return Err(BlueprintError::Duplicate(blueprint.id()));
        }
        if self.entries.len() == MAX_BLUEPRINTS {
            return Err(BlueprintError::TooMany(blueprint.id()));
        }
        self.entries.push(Some(blueprint));
        Ok(self.entries.len() - 1)
    }

    /// Size of the policy's blueprint head: one more than the highest index.
    #[expect(clippy::len_without_is_empty, reason = "the built-in blueprints are always there")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Blueprints in index order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &dyn Blueprint)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(index, entry)| Some((index, entry.as_deref()?)))
    }

    /// Ids by index; empty where this build has no blueprint.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        (0..self.entries.len()).map(|index| self.name_of(index))
    }

    /// Id of blueprint `index`, empty if there is none.
    pub fn name_of(&self, index: usize) -> &'static str {
        self.get(index).map_or("", |blueprint| blueprint.id())
    }

    /// # Errors
    /// [`BlueprintError::UnknownIndex`] lists what there is.
    pub fn get(&self, index: usize) -> Result<&dyn Blueprint, BlueprintError> {
        self.entries
            .get(index)
            .and_then(|entry| entry.as_deref())
            .ok_or_else(|| BlueprintError::UnknownIndex {
                index,
                available: self.available(),
            })
    }

    /// Builds a module of every blueprint at every width that the run's slots have and holds it to the
    /// contract of [`SeedModule`]. Run once at start-up, so that germination need not.
    ///
    /// # Errors
    /// [`BlueprintError::Unfit`] names the first blueprint that breaks it.
    pub fn check(&self, dims: &[i64], backend: Backend, syncs: &HostSyncCounter) -> Result<(), BlueprintError> {
        let _no_grad = NoGrad::new();
        for (_, blueprint) in self.iter() {
            for &dim in dims {
                let breach = breach_of_contract(blueprint, dim, backend, syncs);
                if let Some(why) = breach.unwrap_or_else(|error| Some(error.to_string())) {
                    let id = blueprint.id();
                    return Err(BlueprintError::Unfit { id, dim, why });
                }
            }
        }
        Ok(())
    }

    /// All ids, small blueprints first, then by name.
    fn available(&self) -> String {
        let mut ids: Vec<(u64, &str)> = self
            .iter()
            .map(|(_, blueprint)| (blueprint.param_count(LISTING_WIDTH), blueprint.id()))
            .collect();
        ids.sort_unstable();
        let names: Vec<String> = ids.iter().map(|(_, id)| format!("`{id}`")).collect();
        names.join(", ")
    }
}

/// Side of the image that modules are tried on.
const PROBE_SIDE: i64 = 8;

/// What is wrong with a module of this width, in words; an error if it cannot even be tried.
fn breach_of_contract(
    blueprint: &dyn Blueprint,
    dim: i64,
    backend: Backend,
    syncs: &HostSyncCounter,
) -> Result<Option<String>, BlueprintError> {
    let module = blueprint.build(dim, &mut RunRng::new(0, Domain::SeedInit, &[]), backend)?;
    let (declared, actual) = (blueprint.param_count(dim), module.params().count());
    if declared != actual {
        return Ok(Some(format!("it declares {declared} parameters and has {actual}")));
    }
    let probe = probe(dim, backend)?;
    let Some(delta) = module.delta(&probe, Mode::Eval)? else {
        return Ok(None);
    };
    if delta.size() != probe.size() || delta.kind() != probe.kind() {
        return Ok(Some(format!(
            "it turns {:?} {:?} into {:?} {:?}; a seed must keep its input's shape and type",
            probe.kind(),
            probe.size(),
            delta.kind(),
            delta.size()
        )));
    }
    let largest = read_f64(&delta.f_abs()?.f_max()?, syncs)?;
    let is_identity = largest == [0.0];
    Ok((!is_identity).then(|| "it changes the network at birth; its residual must start at exactly 0".into()))
}

/// An image without two equal pixels.
fn probe(dim: i64, backend: Backend) -> Result<Tensor, TchError> {
    let count = dim * PROBE_SIDE * PROBE_SIDE;
    Tensor::f_linspace(-1.0, 1.0, count, (Kind::Float, backend.device))?.f_view([1, dim, PROBE_SIDE, PROBE_SIDE])
}

#[cfg(test)]
mod tests;
