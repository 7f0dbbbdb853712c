//! The layers that the engine's own hosts are made of, for other hosts to use as well.

mod head;
mod pool;
mod text;
mod folded;
mod conv;
mod residual;

use std::sync::Arc;

use super::LayerDesign;
use crate::graph::LayerGraph;
use crate::scenario::HostNorm;

pub use conv::{Conv, NormRelu};
pub use head::Head;
pub use pool::MaxPool;
pub use residual::ResidualBlock;
pub use text::{Embedding, TextBlock, TextHead};

/// The layer that `graph` describes. `None` for a custom layer, a pool and a seed.
pub fn layer_of(graph: &LayerGraph) -> Option<Arc<dyn LayerDesign>> {
    Some(match *graph {
        LayerGraph::Conv {
            outputs,
            kernel,
            stride,
            bias,
            norm,
            ..
        } => {
            let conv = Conv::new(outputs, kernel)
                .stride(stride)
                .norm(norm.unwrap_or(HostNorm::Batch));
            let conv = if bias { conv.biased() } else { conv };
            Arc::new(if norm.is_none() { conv.bare() } else { conv })
        }
        LayerGraph::MaxPool {
            kernel,
            stride,
            padding,
        } => Arc::new(MaxPool {
            kernel,
            stride,
            padding,
        }),
        LayerGraph::NormRelu { norm, .. } => Arc::new(NormRelu(norm)),
        LayerGraph::Residual {
            outputs,
            stride,
            shortcut,
            pre_activation,
            norm,
            ..
        } => Arc::new(ResidualBlock {
            outputs,
            stride,
            shortcut,
            pre_activation,
            norm,
        }),
        LayerGraph::Head { classes, .. } => Arc::new(Head { classes }),
        LayerGraph::Embedding { width, positions, .. } => Arc::new(Embedding { width, positions }),
        LayerGraph::Text { heads, positions, .. } => Arc::new(TextBlock {
            heads,
            positions,
            // Says how weights are drawn, and they are not.
            depth: 1,
        }),
        LayerGraph::TextHead {
            vocab, ref embedding, ..
        } => Arc::new(TextHead {
            vocab,
            embedding: embedding.clone(),
        }),
        LayerGraph::Pool | LayerGraph::Seed(_) | LayerGraph::Custom => return None,
    })
}
