//! What an application adds to the engine.

use std::error::Error;

use bevy_app::App;

/// Adds plugins, systems, seed modules and controllers to an app that holds the engine already.
///
/// Called for every app that the engine builds: for the names that a scenario may use, and for the run. So it only adds;
/// whatever it does once belongs into a system. The host that never grew is played with the run's names for data, hosts,
/// seed modules and rewards, and without the application's systems: these see the rounds of the run alone.
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
