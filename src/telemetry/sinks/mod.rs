//! The sinks the engine brings along.

mod append;
mod console;
mod jsonl;
mod records;
mod tensorboard;

pub use console::{ColorChoice, Console, ConsoleSink, ProgressStyle, Terminal};
pub use jsonl::JsonLinesSink;
pub use tensorboard::TensorBoardSink;
