//! One run: start-up, the loop, and the ways to stop it.

mod inventory;
mod kernel_test;
mod parts;
mod room;
mod residency;
mod stop;
mod command;
mod driver;
pub(crate) mod startup;

pub(crate) use command::take_command;
pub use command::{COMMAND_FILE, Command, CommandInbox, send_command};
pub use driver::{Driver, DriverStep};
pub use inventory::{Inventory, PluginInfo};
pub use parts::MissingPart;
pub use residency::ChosenResidency;
pub use room::{Room, RoomSource, size};
pub use startup::StartupPlugin;
pub use startup::check_place;
pub use stop::{RoundLimit, StopRequest, StopSignal, end_at_once, outlive_file_limit, stop_on_signals};
