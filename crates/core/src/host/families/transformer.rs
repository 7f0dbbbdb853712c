//! The decoder-only language model of GPT-2 (Radford et al. 2019): embedding, pre-norm blocks with causal attention, a head
//! tied to the embedding.

use super::{MOST_BLOCKS, WIDEST};
use crate::host::{Embedding, HostDesign, HostPlan, TextBlock, TextHead};
use crate::scenario::{HostChoice, HostProblem, Positions, TransformerSpec};

/// Most tokens of a text and of a vocabulary.
const LARGEST: i64 = 1 << 16;
/// Number of groups of layers, each with a slot after it: a place to grow in the first, the middle and the last third.
const SEGMENTS: usize = 3;

impl HostDesign for TransformerSpec {
    /// `embed, layer0, layer1, …, head`. A slot `r0c{segment}` is after every segment.
    fn plan(&self, classes: i64) -> HostPlan {
        const EMBEDDING: &str = "embed";
        let vocab = classes.clamp(1, LARGEST);
        let width = self.width.clamp(1, WIDEST);
        let layers = self.layers.clamp(1, MOST_BLOCKS);
        // The last segment is shorter where they do not come out even, and missing where the others have all layers.
        let layers_per_segment = layers.div_ceil(SEGMENTS);
        let embedding = Embedding {
            width,
            positions: self.positions,
        };
        let block = TextBlock {
            heads: self.heads.clamp(1, width),
            positions: self.positions,
            depth: layers,
        };
        let head = TextHead {
            vocab,
            embedding: EMBEDDING.into(),
        };
        let mut plan = HostPlan::of_text(vocab, self.block.clamp(1, LARGEST)).layer(EMBEDDING, embedding);
        let mut columns = 0_u16..;
        for layer in 0..layers {
            plan = plan.layer(format!("layer{layer}"), block);
            let ends_segment = (layer + 1) % layers_per_segment == 0 || layer + 1 == layers;
            if let Some(column) = ends_segment.then(|| columns.next()).flatten() {
                plan = plan.slot(0, column);
            }
        }
        plan.layer("head", head)
    }

    fn problems(&self) -> Vec<HostProblem> {
        let mut problems = Vec::new();
        let mut add = |fields: Vec<&'static str>, message: String| problems.push(HostProblem { fields, message });
        if self.width % self.heads.max(1) != 0 {
            let message = format!("a width of {} does not divide into {} heads", self.width, self.heads);
            add(vec!["heads", "width"], message);
        } else if self.positions == Positions::Rotary && self.width / self.heads.max(1) % 2 != 0 {
            let channels = self.width / self.heads.max(1);
            let message = format!("rotary positions need an even number of channels a head, not {channels}");
            add(vec!["heads", "width"], message);
        }
        problems
    }

    fn family(&self) -> Option<HostChoice> {
        Some(HostChoice::Transformer(self.clone()))
    }
}

#[cfg(test)]
mod tests;
