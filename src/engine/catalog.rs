//! The names that scenarios may use, the engine's and those that an extension adds.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_app::App;

use super::SimicPlugins;
use super::memory::MemoryEstimate;
use crate::controller::{ControllerRegistry, NetRegistry};
use crate::data::DataRegistry;
use crate::growth::Topology;
use crate::host::HostRegistry;
use crate::reward::RewardModes;
use crate::run::{Extension, ExtensionError};
use crate::scenario::{BlueprintEntry, Catalog, Entry, GrowsIn, Loaded, SeedInit, task_presets};
use crate::seed::BlueprintRegistry;

/// The names that scenarios may use in an engine with this extension.
///
/// # Errors
/// The extension's own.
pub fn catalog(extend: Extension) -> Result<Catalog, ExtensionError> {
    let mut app = App::new();
    app.add_plugins(SimicPlugins::unrecorded());
    extend(&mut app)?;
    let world = app.world();
    Ok(names(
        world.resource::<DataRegistry>(),
        world.resource::<HostRegistry>(),
        world.resource::<BlueprintRegistry>(),
        world.resource::<ControllerRegistry>(),
        world.resource::<NetRegistry>(),
        world.resource::<RewardModes>(),
    ))
}

/// The hosts that scenarios may choose in an engine with this extension.
///
/// # Errors
/// The extension's own.
pub fn hosts(extend: Extension) -> Result<HostRegistry, ExtensionError> {
    let mut app = App::new();
    app.add_plugins(SimicPlugins::unrecorded());
    extend(&mut app)?;
    Ok(app.world().resource::<HostRegistry>().clone())
}

/// The reward modes that an extension adds.
///
/// # Errors
/// The extension's own.
pub fn reward_modes(extend: Extension) -> Result<RewardModes, ExtensionError> {
    let mut app = App::new();
    app.add_plugins(SimicPlugins::unrecorded());
    extend(&mut app)?;
    Ok(app.world().resource::<RewardModes>().clone())
}

/// What a scenario takes of each memory in an engine with this extension, with up to `threads` envs at work at once.
///
/// # Errors
/// The extension's own.
pub fn memory_estimate(loaded: &Loaded, extend: Extension, threads: usize) -> Result<MemoryEstimate, ExtensionError> {
    let mut app = App::new();
    app.add_plugins(SimicPlugins::unrecorded());
    extend(&mut app)?;
    let blueprints = app.world().resource::<BlueprintRegistry>();
    Ok(MemoryEstimate::of(loaded, blueprints, threads))
}

fn names(
    data: &DataRegistry,
    hosts: &HostRegistry,
    blueprints: &BlueprintRegistry,
    controllers: &ControllerRegistry,
    nets: &NetRegistry,
    rewards: &RewardModes,
) -> Catalog {
    Catalog {
        tasks: task_presets(),
        data: data.iter().map(|(name, summary)| Entry::new(name, summary)).collect(),
        hosts: Arc::new(hosts.clone()),
        blueprints: blueprint_entries(blueprints),
        controllers: controllers
            .iter()
            .map(|(name, summary)| Entry::new(name, summary))
            .collect(),
        nets: nets.iter().map(|(name, summary)| Entry::new(name, summary)).collect(),
        rewards: rewards
            .iter()
            .map(|(name, summary)| Entry::new(name, summary))
            .collect(),
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
        names(
            &DataRegistry::default(),
            &HostRegistry::default(),
            &BlueprintRegistry::default(),
            &ControllerRegistry::default(),
            &NetRegistry::default(),
            &RewardModes::default(),
        )
    }
}
