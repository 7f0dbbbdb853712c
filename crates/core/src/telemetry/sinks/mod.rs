//! The sinks the engine brings along.

mod append;
mod records;
mod rounds;
mod tensorboard;
mod terminal;
mod console;

pub use console::{ColorChoice, Console, ConsoleSink, ProgressStyle, event_line};
pub use records::HParam;
pub use rounds::short_duration;
pub use tensorboard::TensorBoardSink;
pub use terminal::Terminal;
