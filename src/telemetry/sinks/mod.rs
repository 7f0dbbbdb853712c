//! The sinks the engine brings along.

mod console;
mod jsonl;

pub use console::{ColorChoice, ConsoleSink, ProgressStyle};
pub use jsonl::JsonLinesSink;
