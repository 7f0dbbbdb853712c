//! The sinks the engine brings along.

mod console;
mod jsonl;

pub use console::{ColorChoice, Console, ConsoleSink, ProgressStyle, Terminal};
pub use jsonl::JsonLinesSink;
