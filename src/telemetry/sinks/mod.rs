//! The sinks the engine brings along.

mod console;
mod jsonl;
mod records;
mod tensorboard;

pub use console::{ColorChoice, Console, ConsoleSink, ProgressStyle, Terminal};
pub use jsonl::JsonLinesSink;
pub use tensorboard::TensorBoardSink;
