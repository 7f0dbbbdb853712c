//! Deciders: all controllers, learned or not, and the registry that plugins add theirs to.

mod command_list;
mod controller;
mod external;
mod context;
mod growth_schedule;
mod heuristic;
mod learned;
mod random;
mod replay;
mod scheduled;
mod wait;
mod registry;

pub use context::BuildContext;
pub use controller::{Controller, LearningPolicy};
pub use external::ExternalCommands;
pub use learned::{ActorCriticController, MANIFEST_FILE, SavedPolicy, WEIGHTS_FILE};
pub use registry::{ControllerFactory, ControllerRegistry};
pub use scheduled::written;
pub use wait::WaitController;
