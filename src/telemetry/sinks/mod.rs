//! The sinks the engine brings along.

mod append;
mod console;
mod jsonl;
mod records;
mod tensorboard;
mod terminal;

pub use console::{ColorChoice, Console, ConsoleSink, ProgressStyle};
pub use jsonl::JsonLinesSink;
pub use tensorboard::TensorBoardSink;
pub use terminal::Terminal;
