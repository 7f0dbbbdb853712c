//! The network that was grown, as a picture: its layers from input to output, and next to each seed its parameters and its
//! contribution to exactly these weights.

use std::fmt::Write;

use maud::Markup;

use super::svg::{picture, text};
use crate::graph::LayerGraph;
use crate::network::GrownNetwork;

const ROW: f64 = 30.0;
const BOX: f64 = 22.0;
const LEFT: f64 = 16.0;
/// Width of a layer's box.
const LAYER: f64 = 250.0;
/// Left end of the texts next to a box.
const DETAILS: f64 = LEFT + LAYER + 18.0;

/// Draws the network.
pub fn network(network: &GrownNetwork) -> Markup {
    let layers = &network.graph.layers;
    let mut body = String::new();
    for (row, layer) in layers.iter().enumerate() {
        let y = 6.0 + ROW * row as f64;
        let parameters = parameters(network, &layer.name);
        let details = match parameters {
            0 => String::new(),
            count => format!("{count} parameters"),
        };
        let (class, name, details) = match &layer.layer {
            LayerGraph::Seed(seed) => {
                let measures = network.history_of(row, seed).and_then(|known| known.measures);
                let worth = measures.map_or_else(String::new, |measures| format!(", {measures}"));
                (
                    "seed",
                    format!("{} in {}", seed.blueprint, seed.slot),
                    format!("{details}{worth}"),
                )
            }
            other => {
                let what = describe(other);
                // A name that adds nothing to that is left out.
                let name = if what.contains(&layer.name) { "" } else { &layer.name };
                ("layer", format!("{name} {what}").trim().to_owned(), details)
            }
        };
        let inset = if class == "seed" { 22.0 } else { 0.0 };
        _ = write!(
            body,
            r#"<rect class="{class}" x="{:.1}" y="{y:.1}" width="{:.1}" height="{BOX}" rx="4"/>"#,
            LEFT + inset,
            LAYER - inset
        );
        text(&mut body, "name", (LEFT + inset + 8.0, y + 15.0), "start", &name);
        text(&mut body, "tick", (DETAILS, y + 15.0), "start", &details);
        if row + 1 < layers.len() {
            let x = LEFT + LAYER / 2.0;
            _ = write!(body, r#"<path class="axis" d="M{x} {:.1}v{:.1}"/>"#, y + BOX, ROW - BOX);
        }
    }
    let height = 8.0 + ROW * layers.len() as f64;
    picture(height, "the network, from input to output", &body)
}

/// Trainable values of a layer. The means and deviations of a norm don't count.
fn parameters(network: &GrownNetwork, layer: &str) -> u64 {
    let tensors = network.parameters.iter().filter(|(name, _)| {
        let rest = name.strip_prefix(layer).and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| !rest.contains("running_") && !rest.contains("num_batches"))
    });
    tensors.map(|(_, tensor)| tensor.bytes().len() as u64 / 4).sum()
}

fn describe(layer: &LayerGraph) -> String {
    match layer {
        LayerGraph::Conv {
            inputs,
            outputs,
            kernel,
            stride,
            ..
        } => {
            let steps = (*stride > 1).then(|| format!(", stride {stride}"));
            format!(
                "conv {inputs}→{outputs}, {kernel}×{kernel}{}",
                steps.unwrap_or_default()
            )
        }
        LayerGraph::Pool => "max pool 2×2".into(),
        LayerGraph::MaxPool { kernel, .. } => format!("max pool {kernel}×{kernel}"),
        LayerGraph::NormRelu { channels, .. } => format!("norm, ReLU {channels}"),
        LayerGraph::Residual { inputs, outputs, .. } => format!("residual block {inputs}→{outputs}"),
        LayerGraph::Head { inputs, classes } => format!("head {inputs}→{classes}"),
        LayerGraph::Embedding { vocab, width, .. } => format!("embedding {vocab}→{width}"),
        LayerGraph::Text { width, heads, .. } => format!("transformer block {width}, {heads} heads"),
        LayerGraph::TextHead { width, vocab, .. } => format!("head {width}→{vocab}"),
        LayerGraph::Seed(seed) => seed.blueprint.clone(),
        LayerGraph::Custom => "a layer of a plugin".into(),
    }
}
