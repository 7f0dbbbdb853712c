//! The names that scenarios may use, the engine's and those that plugins add.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::world::World;

use super::SimicPlugins;
use crate::controller::ControllerRegistry;
use crate::data::{DataRegistry, ImagesOnDisk};
use crate::growth::Topology;
use crate::network::HostRegistry;
use crate::policy::NetRegistry;
use crate::reward::RewardModes;
use crate::scenario::{BlueprintEntry, Catalog, Entry, task_presets};
use crate::schema::{Declared, Registry, Subject};
use crate::seed::BlueprintRegistry;

/// The names that are registered in the world of an engine.
pub(super) fn names_in(world: &World) -> Catalog {
    let entry = |(name, summary): (&str, &str)| Entry::new(name, summary);
    let mut settings = BTreeMap::new();
    add_settings(&mut settings, Subject::Data, world.resource::<DataRegistry>());
    add_settings(&mut settings, Subject::Hosts, world.resource::<HostRegistry>());
    add_settings(
        &mut settings,
        Subject::Controllers,
        world.resource::<ControllerRegistry>(),
    );
    add_settings(&mut settings, Subject::Networks, world.resource::<NetRegistry>());
    add_settings(&mut settings, Subject::Rewards, world.resource::<RewardModes>());
    Catalog {
        settings,
        tasks: task_presets(),
        data: world.resource::<DataRegistry>().iter().map(entry).collect(),
        images: Some(Arc::new(ImagesOnDisk::new(world.resource::<DataRegistry>()))),
        hosts: Arc::new(world.resource::<HostRegistry>().clone()),
        blueprints: blueprint_entries(world.resource()),
        controllers: world.resource::<ControllerRegistry>().iter().map(entry).collect(),
        nets: world.resource::<NetRegistry>().iter().map(entry).collect(),
        rewards: world.resource::<RewardModes>().iter().map(entry).collect(),
        profiles: Arc::new(world.resource::<RewardModes>().clone()),
    }
}

fn add_settings<T: ?Sized + Send + Sync>(
    all: &mut BTreeMap<(Subject, String), Declared>,
    subject: Subject,
    registry: &Registry<T>,
) {
    let settings = registry.settings();
    all.extend(settings.map(|(name, declared)| ((subject, name.to_ascii_lowercase()), declared.clone())));
}

/// One for each id, with all kinds of features that it is for.
fn blueprint_entries(blueprints: &BlueprintRegistry) -> Vec<BlueprintEntry> {
    /// A width at which every blueprint that grows anything has parameters.
    const WIDTH: i64 = 1;
    let mut entries: BTreeMap<usize, BlueprintEntry> = BTreeMap::new();
    for topology in Topology::ALL {
        for (index, blueprint) in blueprints.for_topology(topology) {
            let entry = entries.entry(index).or_insert_with(|| BlueprintEntry {
                index: Some(index),
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
            entry.grows_in.push(topology);
        }
    }
    let on_request = blueprints.on_request().map(|blueprint| BlueprintEntry {
        index: None,
        name: blueprint.id().into(),
        summary: blueprint.summary().into(),
        selectable: blueprint.param_count(WIDTH) > 0,
        grows_in: vec![blueprint.topology()],
    });
    entries.into_values().chain(on_request).collect()
}

/// The names of the engine without an application's plugins.
pub fn built_in_names() -> Catalog {
    let mut app = App::new();
    app.add_plugins(SimicPlugins::unrecorded());
    names_in(app.world())
}

#[cfg(test)]
mod settled_tests;
#[cfg(test)]
mod tests;
