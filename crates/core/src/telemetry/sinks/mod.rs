//! The sinks the engine brings along.

mod rounds;
mod terminal;
mod console;

pub use console::{ColorChoice, Console, ConsoleSink, ProgressStyle, event_line};
pub use rounds::short_duration;
pub use terminal::Terminal;
