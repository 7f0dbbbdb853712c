//! Parts of an engine: its plugins, for manifests and `list plugins`.

use bevy_ecs::prelude::*;
use serde::Serialize;

/// A part of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PluginInfo {
    /// Type name of the plugin, or an extension's name for itself.
    pub name: String,
    /// Version of the crate that it comes from.
    pub version: String,
    /// One line.
    pub summary: String,
}

/// The plugins of an app. The engine's are found; others add themselves when they are built:
///
/// ```
/// # extern crate simic_core as simic_engine;
/// # use bevy_app::{App, Plugin};
/// use simic_engine::prelude::Inventory;
///
/// struct FrostPlugin;
///
/// impl Plugin for FrostPlugin {
///     fn build(&self, app: &mut App) {
///         let mut inventory = app.world_mut().get_resource_or_init::<Inventory>();
///         inventory.add("frost", env!("CARGO_PKG_VERSION"), "stops the growth of seeds in winter");
///     }
/// }
/// ```
#[derive(Resource, Clone, Debug, Default)]
pub struct Inventory(Vec<PluginInfo>);

impl Inventory {
    /// Adds a part.
    pub fn add(&mut self, name: impl Into<String>, version: impl Into<String>, summary: impl Into<String>) {
        self.0.push(PluginInfo {
            name: name.into(),
            version: version.into(),
            summary: summary.into(),
        });
    }

    /// The engine's first, in the order of its group.
    pub fn plugins(&self) -> &[PluginInfo] {
        &self.0
    }
}
