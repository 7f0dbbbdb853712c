//! Blueprints: what can be grown, each under an index that policies and observations use for ever (spec 01 §4.1-4.2).
//!
//! The registry is filled at start-up and immutable afterwards. A plugin adds a kind of seed by implementing
//! [`Blueprint`] and [`SeedModule`] and registering it; it receives the next free index.

use bevy_ecs::resource::Resource;
use tch::{Device, Kind, TchError, Tensor};

use super::modules::CnnBlueprint;
use crate::host::{Mode, ParamSet, Topology};
use crate::random::{Domain, RunRng};
use crate::torch::{NoGrad, TorchError};

/// A module that grows in a slot, defined by its residual: the slot's full output is `x + δ(x)` (spec 01 §4.1).
///
/// Laws: δ is exactly 0 at birth; every parameter receives gradient within three plain SGD steps; no normalisation
/// follows a zero-initialised layer; shape and dtype are kept at any resolution; no running statistics; `x` is never
/// written to.
pub trait SeedModule: Send {
    /// `None` means identically zero.
    fn delta(&self, x: &Tensor, mode: Mode) -> Result<Option<Tensor>, TchError>;

    fn params(&self) -> &ParamSet;

    /// Multiply-accumulates per sample over `positions` spatial positions.
    fn macs(&self, positions: u64) -> u64;
}

/// A kind of seed.
///
/// ```
/// use simic_engine::host::{Init, Mode, ParamSet, Topology};
/// use simic_engine::random::RunRng;
/// use simic_engine::seed::{Blueprint, BlueprintError, BlueprintRegistry, SeedModule};
/// use tch::{Device, TchError, Tensor};
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
///     fn topology(&self) -> Topology { Topology::Cnn }
///     fn param_count(&self, dim: i64) -> u64 { dim as u64 }
///     fn build(&self, dim: i64, rng: &mut RunRng, device: Device) -> Result<Box<dyn SeedModule>, BlueprintError> {
///         let mut params = ParamSet::new(device);
///         let weight = params.add("weight", &[dim, 1, 1], Init::Constant(0.0))?;
///         params.initialise(rng)?;
///         Ok(Box::new(ChannelScaleModule { weight, params }))
///     }
/// }
///
/// let mut registry = BlueprintRegistry::default();
/// assert_eq!(registry.register(Box::new(ChannelScale))?, 13);
/// registry.check_shapes(&[8, 16], Device::Cpu)?;
/// # Ok::<(), BlueprintError>(())
/// ```
pub trait Blueprint: Send + Sync {
    fn id(&self) -> &'static str;

    fn topology(&self) -> Topology;

    /// Trainable values of a module of this width, exact, without building it.
    fn param_count(&self, dim: i64) -> u64;

    /// Builds a module for `dim` channels, its weights drawn from `rng` in parameter order.
    fn build(&self, dim: i64, rng: &mut RunRng, device: Device) -> Result<Box<dyn SeedModule>, BlueprintError>;
}

/// Why a blueprint could not be found, registered or built.
#[derive(Debug, thiserror::Error)]
pub enum BlueprintError {
    #[error("there is no blueprint `{id}`; available are {available}")]
    UnknownId { id: String, available: String },
    #[error("there is no blueprint with index {index}; available are {available}")]
    UnknownIndex { index: usize, available: String },
    #[error("a blueprint `{0}` is registered already; choose another id")]
    Duplicate(&'static str),
    #[error("blueprint `{0}` is one too many: an action mask holds {MAX_BLUEPRINTS}; register fewer")]
    TooMany(&'static str),
    #[error("blueprint `{id}` was asked for {dim} channels; at least 1 is needed")]
    BadWidth { id: &'static str, dim: i64 },
    #[error("blueprint `{id}` turns {expected:?} into {actual:?}; a seed must keep its input's shape")]
    ShapeMismatch {
        id: &'static str,
        expected: Vec<i64>,
        actual: Vec<i64>,
    },
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl From<TchError> for BlueprintError {
    fn from(error: TchError) -> Self {
        Self::Torch(error.into())
    }
}

/// First index of blueprints that plugins register; the ones below are fixed (spec 01 §4.2).
pub const FIRST_PLUGIN_INDEX: usize = 13;

/// Most indices that there can be: the bits of one word of an action mask.
pub const MAX_BLUEPRINTS: usize = u64::BITS as usize;

/// Width at which error messages order the available blueprints by size.
const LISTING_WIDTH: i64 = 32;

/// All blueprints by index.
#[derive(Resource)]
pub struct BlueprintRegistry {
    /// `None` marks indices that belong to another topology's blueprints.
    entries: Vec<Option<Box<dyn Blueprint>>>,
}

impl Default for BlueprintRegistry {
    /// The built-in blueprints.
    fn default() -> Self {
        let mut entries: Vec<Option<Box<dyn Blueprint>>> = CnnBlueprint::BY_INDEX
            .into_iter()
            .map(|blueprint| Some(Box::new(blueprint) as Box<dyn Blueprint>))
            .collect();
        entries.resize_with(FIRST_PLUGIN_INDEX, || None);
        Self { entries }
    }
}

impl BlueprintRegistry {
    /// Adds a plugin's blueprint and returns its index.
    ///
    /// # Errors
    /// [`BlueprintError::Duplicate`] if its topology has a blueprint of this id, [`BlueprintError::TooMany`] if no index
    /// is left.
    pub fn register(&mut self, blueprint: Box<dyn Blueprint>) -> Result<usize, BlueprintError> {
        let same = |other: &dyn Blueprint| other.id() == blueprint.id() && other.topology() == blueprint.topology();
        if self.iter().any(|(_, other)| same(other)) {
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

    /// # Errors
    /// [`BlueprintError::UnknownId`] lists what there is.
    pub fn index_of(&self, id: &str) -> Result<usize, BlueprintError> {
        self.iter()
            .find(|(_, blueprint)| blueprint.id() == id)
            .map(|(index, _)| index)
            .ok_or_else(|| BlueprintError::UnknownId {
                id: id.into(),
                available: self.available(),
            })
    }

    /// Builds the module of blueprint `index` for `dim` channels; `rng` is the stream of this germination.
    ///
    /// # Errors
    /// [`BlueprintError`]; nothing is left behind.
    pub fn build(
        &self,
        index: usize,
        dim: i64,
        rng: &mut RunRng,
        device: Device,
    ) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let blueprint = self.get(index)?;
        if dim < 1 {
            return Err(BlueprintError::BadWidth {
                id: blueprint.id(),
                dim,
            });
        }
        blueprint.build(dim, rng, device)
    }

    /// Passes a zero image through a module of every blueprint at every width that the run's slots have. Run once at
    /// start-up, so that germination need not (spec 01 §4.5).
    ///
    /// # Errors
    /// [`BlueprintError::ShapeMismatch`] for the first blueprint that does not keep the shape.
    pub fn check_shapes(&self, dims: &[i64], device: Device) -> Result<(), BlueprintError> {
        let _no_grad = NoGrad::new();
        for &dim in dims {
            let probe = Tensor::f_zeros([1, dim, 32, 32], (Kind::Float, device))?;
            for (index, blueprint) in self.iter() {
                let module = self.build(index, dim, &mut RunRng::new(0, Domain::SeedInit, &[]), device)?;
                let actual = module.delta(&probe, Mode::Eval)?.map(|delta| delta.size());
                if let Some(actual) = actual.filter(|actual| *actual != probe.size()) {
                    return Err(BlueprintError::ShapeMismatch {
                        id: blueprint.id(),
                        expected: probe.size(),
                        actual,
                    });
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
