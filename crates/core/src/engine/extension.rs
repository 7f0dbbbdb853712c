//! Parts that an application adds to the engine, and the names that scenarios may use with it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bevy_app::{App, Plugin, Plugins};
use bevy_ecs::prelude::{Resource, World};

use super::SimicPlugins;
use super::catalog::names_in;
use crate::controller::{ControllerRegistry, ObservationFeatures};
use crate::data::DataRegistry;
use crate::network::HostRegistry;
use crate::policy::NetRegistry;
use crate::record::Build;
use crate::reward::{RewardModes, RewardTerms};
use crate::run::{Inventory, PluginInfo};
use crate::scenario::Catalog;
use crate::schema::{NameError, Registry};
use crate::seed::BlueprintRegistry;
use crate::telemetry::{Detectors, Metrics};

/// The plugins of an application, as they are added to every engine of a program: a sweep, an evaluation and a run with its
/// control build several. They may register names, add systems and hold state.
///
/// A plugin is built for the names that a scenario may use, and for each run. So it only adds. Work that it does once belongs in
/// a system. The host that never grew is played with the run's names for data, hosts, seed modules and rewards, and without
/// the application's systems, which see only the rounds of the run.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use simic_engine::extend::WaitController;
/// use simic_engine::prelude::*;
///
/// fn patience(app: &mut App) {
///     let mut controllers = app.world_mut().resource_mut::<ControllerRegistry>();
///     controllers.register("patience", "waits, under another name", Arc::new(|_| Ok(Box::new(WaitController))));
/// }
///
/// let engine = Engine::builder().with(patience).from_ron(r#"(policy: (controller: "patience"))"#)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// In a program of its own, `simic_engine::cli::main(Extension::new(patience))` is the whole command line.
#[derive(Clone, Default)]
pub struct Extension {
    plugins: Vec<AddPlugins>,
    names: Arc<OnceLock<Result<Names, NameError>>>,
}

type AddPlugins = Arc<dyn Fn(&mut App) + Send + Sync>;

/// The names of an engine with the plugins of an application.
#[derive(Clone)]
pub struct Names {
    /// Those that scenarios may use.
    pub catalog: Catalog,
    /// Hosts by name.
    pub hosts: HostRegistry,
    /// Blueprints by index.
    pub blueprints: BlueprintRegistry,
    /// Reward modes by name.
    pub rewards: RewardModes,
    /// Data sets by name.
    pub data: DataRegistry,
    /// Detectors by name.
    pub detectors: Detectors,
    /// The plugins of a recorded run.
    pub plugins: Vec<PluginInfo>,
    /// The build that the program is from.
    pub build: Build,
}

impl Extension {
    /// Extension by plugins: a plugin, a function of an [`App`], or a tuple of them.
    pub fn new<M>(plugins: impl Plugins<M> + Clone + Send + Sync + 'static) -> Self {
        Self::default().with(plugins)
    }

    /// With more plugins.
    pub fn with<M>(mut self, plugins: impl Plugins<M> + Clone + Send + Sync + 'static) -> Self {
        self.names = Arc::default();
        self.plugins
            .push(Arc::new(move |app| _ = app.add_plugins(plugins.clone())));
        self
    }

    /// The names of an engine with these plugins, learnt once.
    ///
    /// # Errors
    /// The first part that a plugin could not register.
    pub fn names(&self) -> Result<&Names, NameError> {
        let learnt = self.names.get_or_init(|| {
            let mut app = App::new();
            app.add_plugins(SimicPlugins::recorded(false)).add_plugins(self.clone());
            Names::of(app.world())
        });
        learnt.as_ref().map_err(Clone::clone)
    }
}

impl Plugin for Extension {
    fn build(&self, app: &mut App) {
        for add in &self.plugins {
            add(app);
        }
    }

    fn is_unique(&self) -> bool {
        false
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extension of {} plugins", self.plugins.len())
    }
}

impl Names {
    fn of(world: &World) -> Result<Self, NameError> {
        refused(world)?;
        let plugins = world
            .get_resource::<Inventory>()
            .map(|inventory| inventory.plugins().to_vec());
        Ok(Self {
            catalog: names_in(world),
            hosts: world.resource::<HostRegistry>().clone(),
            blueprints: world.resource::<BlueprintRegistry>().clone(),
            rewards: world.resource::<RewardModes>().clone(),
            data: world.resource::<DataRegistry>().clone(),
            detectors: world.resource::<Detectors>().clone(),
            plugins: plugins.unwrap_or_default(),
            build: *world.resource(),
        })
    }
}

/// Checks that every part could be registered. A registry of a plugin that was left out holds nothing.
///
/// # Errors
/// The first part that could not.
pub(super) fn refused(world: &World) -> Result<(), NameError> {
    fn first<R: Resource + Deref<Target = Registry<T>>, T: ?Sized + Send + Sync + 'static>(
        world: &World,
    ) -> Option<&NameError> {
        world.get_resource::<R>()?.refused()
    }
    let refused = first::<DataRegistry, _>(world)
        .or_else(|| first::<HostRegistry, _>(world))
        .or_else(|| world.get_resource::<BlueprintRegistry>()?.refused())
        .or_else(|| first::<ControllerRegistry, _>(world))
        .or_else(|| first::<NetRegistry, _>(world))
        .or_else(|| world.get_resource::<ObservationFeatures>()?.refused())
        .or_else(|| first::<RewardModes, _>(world))
        .or_else(|| first::<RewardTerms, _>(world))
        .or_else(|| first::<Metrics, _>(world))
        .or_else(|| first::<Detectors, _>(world));
    refused.map_or(Ok(()), |error| Err(error.clone()))
}

#[cfg(test)]
mod tests;
