//! The names that scenarios may use, the engine's and those that an extension adds.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::world::World;

use super::SimicPlugins;
use super::memory::MemoryEstimate;
use crate::controller::ControllerRegistry;
use crate::data::{DataRegistry, ImagesOnDisk};
use crate::growth::Topology;
use crate::host::HostRegistry;
use crate::policy::NetRegistry;
use crate::reward::RewardModes;
use crate::run::{Extension, ExtensionError};
use crate::scenario::{BlueprintEntry, Catalog, Entry, GrowsIn, Loaded, SeedInit, task_presets};
use crate::seed::BlueprintRegistry;

/// What `read` finds in an engine with this extension.
///
/// # Errors
/// The extension's own.
fn extended<T>(extend: Extension, read: impl FnOnce(&World) -> T) -> Result<T, ExtensionError> {
    let mut app = App::new();
    app.add_plugins(SimicPlugins::unrecorded());
    extend(&mut app)?;
    Ok(read(app.world()))
}

/// The names that scenarios may use in an engine with this extension.
///
/// # Errors
/// The extension's own.
pub fn catalog(extend: Extension) -> Result<Catalog, ExtensionError> {
    extended(extend, names)
}

/// The hosts that scenarios may choose in an engine with this extension.
///
/// # Errors
/// The extension's own.
pub fn hosts(extend: Extension) -> Result<HostRegistry, ExtensionError> {
    extended(extend, |world| world.resource::<HostRegistry>().clone())
}

/// The reward modes that an extension adds.
///
/// # Errors
/// The extension's own.
pub fn reward_modes(extend: Extension) -> Result<RewardModes, ExtensionError> {
    extended(extend, |world| world.resource::<RewardModes>().clone())
}

/// What a scenario takes of each memory in an engine with this extension, with up to `threads` envs at work at once.
///
/// # Errors
/// The extension's own.
pub fn memory_estimate(loaded: &Loaded, extend: Extension, threads: usize) -> Result<MemoryEstimate, ExtensionError> {
    extended(extend, |world| MemoryEstimate::of(loaded, world.resource(), threads))
}

fn names(world: &World) -> Catalog {
    let entry = |(name, summary): (&str, &str)| Entry::new(name, summary);
    Catalog {
        tasks: task_presets(),
        data: world.resource::<DataRegistry>().iter().map(entry).collect(),
        images: Some(Arc::new(ImagesOnDisk::new(world.resource::<DataRegistry>()))),
        hosts: Arc::new(world.resource::<HostRegistry>().clone()),
        blueprints: blueprint_entries(world.resource()),
        controllers: world.resource::<ControllerRegistry>().iter().map(entry).collect(),
        nets: world.resource::<NetRegistry>().iter().map(entry).collect(),
        rewards: world.resource::<RewardModes>().iter().map(entry).collect(),
    }
}

/// One for each id, with all kinds of features that it is for.
fn blueprint_entries(blueprints: &BlueprintRegistry) -> Vec<BlueprintEntry> {
    /// A width at which every blueprint that grows anything has parameters.
    const WIDTH: i64 = 1;
    let mut entries: BTreeMap<usize, BlueprintEntry> = BTreeMap::new();
    for topology in Topology::ALL {
        for (index, blueprint) in blueprints.for_topology(topology) {
            let entry = entries.entry(index).or_insert_with(|| BlueprintEntry {
                index,
                name: blueprint.id().into(),
                summary: blueprint.summary().into(),
                selectable: blueprint.param_count(WIDTH) > 0,
                grows_in: Vec::new(),
            });
            if entry.summary != blueprint.summary() {
                let of = |topology: Topology, summary: &str| format!("{}: {summary}", topology.name());
                let (first, second) = (Topology::Image, topology);
                entry.summary = [of(first, &entry.summary), of(second, blueprint.summary())].join("; ");
            }
            let offered = SeedInit::ALL.into_iter().filter(|&init| blueprint.offers(init));
            entry.grows_in.push(GrowsIn {
                topology,
                inits: offered.collect(),
            });
        }
    }
    entries.into_values().collect()
}

impl Default for Catalog {
    /// The names of the engine as it is.
    fn default() -> Self {
        let mut world = World::new();
        world.init_resource::<DataRegistry>();
        world.init_resource::<HostRegistry>();
        world.init_resource::<BlueprintRegistry>();
        world.init_resource::<ControllerRegistry>();
        world.init_resource::<NetRegistry>();
        world.init_resource::<RewardModes>();
        names(&world)
    }
}
