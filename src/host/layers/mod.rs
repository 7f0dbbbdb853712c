//! The layers that the engine's own hosts are made of, for other hosts to use as well.

mod conv;
mod folded;
mod head;
mod residual;
mod text;
mod unit;

pub use conv::{Conv, NormRelu};
pub use head::Head;
pub use residual::ResidualBlock;
pub use text::{Embedding, TextBlock, TextHead};
