//! The sinks the engine brings along.

mod rounds;
mod output;
mod terminal;
mod console;

pub use console::{ColorChoice, Console, ConsoleSink, ProgressStyle, event_line};
pub use output::Output;
pub use rounds::short_duration;
pub use terminal::Terminal;
