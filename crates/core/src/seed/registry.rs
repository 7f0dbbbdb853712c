//! The registry of blueprints: all modules that can grow, each under an index that policies and observations use for ever.
//!
//! It is filled when the engine is put together and is immutable once a run has started.

use std::sync::Arc;

use bevy_ecs::resource::Resource;

use super::contract::breach_of_contract;
use super::{Blueprint, BlueprintError, MAX_BLUEPRINTS};
use crate::growth::Topology;
use crate::schema::NameError;
use crate::torch::{Backend, HostSyncCounter};

/// First index of blueprints that plugins register; the ones below are fixed.
pub const FIRST_PLUGIN_INDEX: usize = 13;

/// Width at which error messages order the available blueprints by size.
const LISTING_WIDTH: i64 = 32;

/// All blueprints by index. An id has one index, with at most one blueprint for each kind of features. A run uses
/// only those for the features of its host.
#[derive(Resource, Clone)]
pub struct BlueprintRegistry {
    entries: Vec<Entry>,
    /// Blueprints that a run has only where its scenario names them: no policy is offered what it was not trained for.
    on_request: Vec<Arc<dyn Blueprint>>,
    served: Topology,
    refused: Option<NameError>,
}

/// An entry by topology; nothing at indices that are kept free.
type Entry = [Option<Arc<dyn Blueprint>>; Topology::ALL.len()];

impl BlueprintRegistry {
    /// Registry of built-in blueprints with their indices, below [`FIRST_PLUGIN_INDEX`].
    pub(super) fn of(
        built_in: impl Iterator<Item = (usize, Arc<dyn Blueprint>)>,
        on_request: impl Into<Vec<Arc<dyn Blueprint>>>,
    ) -> Self {
        let mut entries = Vec::new();
        entries.resize_with(FIRST_PLUGIN_INDEX, Entry::default);
        for (index, blueprint) in built_in {
            let topology = blueprint.topology();
            entries[index][topology as usize] = Some(blueprint);
        }
        Self {
            entries,
            on_request: on_request.into(),
            served: Topology::Image,
            refused: None,
        }
    }

    /// Adds those of the blueprints on request that are `wanted`, after all others.
    ///
    /// # Errors
    /// No index is left.
    pub fn request(&mut self, wanted: impl Fn(&str) -> bool) -> Result<(), NameError> {
        let (wanted, others) = std::mem::take(&mut self.on_request)
            .into_iter()
            .partition(|blueprint| wanted(blueprint.id()));
        self.on_request = others;
        let mut wanted: std::vec::IntoIter<_> = Vec::into_iter(wanted);
        wanted.try_for_each(|blueprint| self.insert(blueprint))
    }

    /// Blueprints on request, in the order in which a run gets them.
    pub fn on_request(&self) -> impl Iterator<Item = &dyn Blueprint> {
        self.on_request.iter().map(Arc::as_ref)
    }

    /// Selects the blueprints for features of this kind, from here on.
    pub fn serve(&mut self, topology: Topology) {
        self.served = topology;
    }

    /// The features that these blueprints are for.
    pub const fn served(&self) -> Topology {
        self.served
    }

    /// Adds a plugin's blueprint, at the index of its id if there is one for other features. It is refused when the engine is
    /// built if there is one of this id for the same features, and if no index is left.
    pub fn register(&mut self, blueprint: Arc<dyn Blueprint>) {
        if let Err(error) = self.insert(blueprint) {
            self.refused.get_or_insert(error);
        }
    }

    fn insert(&mut self, blueprint: Arc<dyn Blueprint>) -> Result<(), NameError> {
        let (noun, name, place) = ("blueprint", blueprint.id(), blueprint.topology() as usize);
        NameError::check(noun, name)?;
        let is_namesake = |entry: &Entry| entry.iter().flatten().any(|other| other.id() == name);
        let index = self.entries.iter().position(is_namesake);
        if self.on_request.iter().any(|other| other.id() == name) {
            let name = name.into();
            return Err(NameError::Taken { noun, name });
        }
        if index.is_none() && self.entries.len() == MAX_BLUEPRINTS {
            let why = format!("an action mask holds {MAX_BLUEPRINTS} blueprints; register fewer");
            let name = name.into();
            return Err(NameError::Refused { noun, name, why });
        }
        let index = index.unwrap_or_else(|| {
            self.entries.push(Entry::default());
            self.entries.len() - 1
        });
        let entry = &mut self.entries[index][place];
        if entry.is_some() {
            let name = name.into();
            return Err(NameError::Taken { noun, name });
        }
        *entry = Some(blueprint);
        Ok(())
    }

    /// The first blueprint that was refused.
    pub const fn refused(&self) -> Option<&NameError> {
        self.refused.as_ref()
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

    /// The blueprints for features of one kind, in index order.
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

    /// Holds modules of every blueprint to the contract of
    /// [`SeedModule`](super::SeedModule) at every width that the run's slots have. Run once at start-up, so that
    /// germination need not; a test of a custom blueprint calls it with the widths that it is meant for.
    ///
    /// # Errors
    /// [`BlueprintError::Unfit`] names the first blueprint that breaks it, the width and the breach.
    pub fn check(&self, dims: &[i64], backend: Backend, syncs: &HostSyncCounter) -> Result<(), BlueprintError> {
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

#[cfg(test)]
mod tests;
