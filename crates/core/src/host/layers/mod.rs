//! The layers that the engine's own hosts are made of, for other hosts to use as well.

mod head;
mod text;
mod unit;
mod folded;
mod conv;
mod residual;

pub use conv::{Conv, NormRelu};
pub use head::Head;
pub use residual::ResidualBlock;
pub use text::{Embedding, TextBlock, TextHead};
