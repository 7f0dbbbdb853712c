//! Blueprints: what can be grown, each under an index that policies and observations use for ever.
//!
//! The registry is filled at start-up and immutable afterwards. A plugin adds a kind of seed by implementing
//! [`Blueprint`] and [`SeedModule`] and registering it; it receives the next free index.

use bevy_ecs::resource::Resource;
use tch::{Kind, TchError, Tensor};

use super::{BlendError, fit_residual};
use crate::growth::Topology;
use crate::random::{Domain, RunRng};
use crate::torch::{Backend, Mode, Onto, ParamSet};
use crate::torch::{HostSyncCounter, NoGrad, TorchError, read_f64};

/// A module that grows in a slot, defined by its residual: the slot's full output is `x + δ(x)`.
///
/// Laws: δ is exactly 0 at birth; every parameter receives gradient within three plain SGD steps; no normalisation
/// follows a zero-initialised layer; shape and dtype are kept at any resolution or length; no running statistics; `x` is
/// never written to. What a module for texts makes of a position depends on positions up to it alone.
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

    /// Multiply-accumulates per sample over `positions` spatial positions, or tokens.
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

    /// The features that its modules read.
    fn topology(&self) -> Topology {
        Topology::Image
    }

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
    #[error("a blueprint `{0}` is registered already for these features; choose another id")]
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

/// All blueprints by index. An id has one index, and under it at most one blueprint for each kind of features; a run has
/// to do with those for the features of its host.
#[derive(Resource)]
pub struct BlueprintRegistry {
    entries: Vec<Entry>,
    served: Topology,
}

/// By topology; nothing at indices that are kept free.
type Entry = [Option<Box<dyn Blueprint>>; Topology::ALL.len()];

impl BlueprintRegistry {
    /// Of built-in blueprints with their indices, below [`FIRST_PLUGIN_INDEX`].
    pub(super) fn of(built_in: impl Iterator<Item = (usize, Box<dyn Blueprint>)>) -> Self {
        let mut entries = Vec::new();
        entries.resize_with(FIRST_PLUGIN_INDEX, Entry::default);
        for (index, blueprint) in built_in {
            let topology = blueprint.topology();
            entries[index][topology as usize] = Some(blueprint);
        }
        Self {
            entries,
            served: Topology::Image,
        }
    }

    /// From here on the blueprints for features of this kind are those that there are.
    pub fn serve(&mut self, topology: Topology) {
        self.served = topology;
    }

    /// The features that the blueprints there are are for.
    pub const fn served(&self) -> Topology {
        self.served
    }

    /// Adds a plugin's blueprint and returns its index: that of its id, if there is one for other features.
    ///
    /// # Errors
    /// [`BlueprintError::Duplicate`] if there is a blueprint of this id, [`BlueprintError::TooMany`] if no index is left.
    pub fn register(&mut self, blueprint: Box<dyn Blueprint>) -> Result<usize, BlueprintError> {
        let place = blueprint.topology() as usize;
        let is_namesake = |entry: &Entry| entry.iter().flatten().any(|other| other.id() == blueprint.id());
        if let Some(index) = self.entries.iter().position(is_namesake) {
            if self.entries[index][place].is_some() {
                return Err(BlueprintError::Duplicate(blueprint.id()));
            }
            self.entries[index][place] = Some(blueprint);
            return Ok(index);
        }
        if self.entries.len() == MAX_BLUEPRINTS {
            return Err(BlueprintError::TooMany(blueprint.id()));
        }
        let mut entry = Entry::default();
        entry[place] = Some(blueprint);
        self.entries.push(entry);
        Ok(self.entries.len() - 1)
    }

    /// Size of the policy's blueprint head: one more than the highest index.
    #[expect(clippy::len_without_is_empty, reason = "the built-in blueprints are always there")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Blueprints in index order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &dyn Blueprint)> {
        self.for_topology(self.served)
    }

    /// Those for features of one kind, in index order.
    pub fn for_topology(&self, topology: Topology) -> impl Iterator<Item = (usize, &dyn Blueprint)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(move |(index, entry)| Some((index, entry[topology as usize].as_deref()?)))
    }

    /// Ids by index; empty where there is none for these features.
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
            .and_then(|entry| entry[self.served as usize].as_deref())
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

/// Side of the image, and tokens of the texts, that modules are tried on.
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
    let probe = probe(blueprint.topology(), dim, backend)?;
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

/// Features without two equal values.
fn probe(topology: Topology, dim: i64, backend: Backend) -> Result<Tensor, TchError> {
    let size = match topology {
        Topology::Image => vec![1, dim, PROBE_SIDE, PROBE_SIDE],
        Topology::Tokens => vec![2, PROBE_SIDE, dim],
    };
    let count = size.iter().product::<i64>();
    Tensor::f_linspace(-1.0, 1.0, count, (Kind::Float, backend.device))?.f_view(size.as_slice())
}

#[cfg(test)]
mod tests;
