//! What an application adds to the engine, and the names that scenarios may use because of it.

use std::error::Error;

use bevy_app::App;

use crate::SimicPlugins;
use crate::controller::{ControllerRegistry, NetRegistry};
use crate::scenario::{BlueprintEntry, Catalog, Entry, task_presets};
use crate::seed::BlueprintRegistry;

/// Adds plugins, systems, seed modules and controllers to an app that holds the engine already.
///
/// Called for every app that the engine builds: for the names that a scenario may use, for the run, and for the host that
/// never grew. So it only adds; whatever it does once belongs into a system.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use bevy_app::App;
/// use simic_engine::run::ExtensionError;
/// use simic_engine::{cli, controller::ControllerRegistry, controller::WaitController};
///
/// fn extend(app: &mut App) -> Result<(), ExtensionError> {
///     let mut controllers = app.world_mut().resource_mut::<ControllerRegistry>();
///     controllers.register("patience", "waits, under another name", |_| Ok(Box::new(WaitController)))?;
///     Ok(())
/// }
///
/// fn main() -> ExitCode {
///     cli::main(extend)
/// }
/// ```
pub type Extension = fn(&mut App) -> Result<(), ExtensionError>;

/// Whatever an extension fails with, usually a name that is taken.
pub type ExtensionError = Box<dyn Error + Send + Sync>;

/// The engine as it is.
pub const NO_EXTENSION: Extension = |_| Ok(());

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
        world.resource::<BlueprintRegistry>(),
        world.resource::<ControllerRegistry>(),
        world.resource::<NetRegistry>(),
    ))
}

fn names(blueprints: &BlueprintRegistry, controllers: &ControllerRegistry, nets: &NetRegistry) -> Catalog {
    /// A width at which every blueprint that grows anything has parameters.
    const WIDTH: i64 = 1;
    Catalog {
        tasks: task_presets(),
        hosts: vec![Entry::new(
            "cnn",
            "blocks of convolution, batch norm and ReLU, max pools, linear head",
        )],
        blueprints: blueprints
            .iter()
            .map(|(index, blueprint)| BlueprintEntry {
                index,
                name: blueprint.id().into(),
                summary: blueprint.summary().into(),
                selectable: blueprint.param_count(WIDTH) > 0,
            })
            .collect(),
        controllers: controllers
            .iter()
            .map(|(name, summary)| Entry::new(name, summary))
            .collect(),
        nets: nets.iter().map(|(name, summary)| Entry::new(name, summary)).collect(),
    }
}

impl Default for Catalog {
    /// The names of the engine as it is.
    fn default() -> Self {
        names(
            &BlueprintRegistry::default(),
            &ControllerRegistry::default(),
            &NetRegistry::default(),
        )
    }
}
