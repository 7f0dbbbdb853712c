//! From a description to the network: every size is checked before anything of it is allocated, since descriptions come
//! out of files.

use std::sync::Arc;

use super::NetworkError;
use super::seed_layer::SeedDesign;
use crate::graph::{Graph, LayerGraph, ModuleGraph, SeedGraph, StackLayer};
use crate::host::{HostError, HostPlan, LayerDesign, layer_of};

/// Most channels, tokens or pixels of a side.
const LARGEST: i64 = 1 << 20;
/// Widest kernel.
const WIDEST_KERNEL: i64 = 31;

impl Graph {
    /// The plan of the network, from which it can be built, and grown further.
    ///
    /// # Errors
    /// [`NetworkError::Custom`], [`NetworkError::Impossible`].
    pub fn plan(&self) -> Result<HostPlan, NetworkError> {
        let mut plan = match self.topology {
            crate::growth::Topology::Image => HostPlan::new(self.channels, self.side),
            crate::growth::Topology::Tokens => HostPlan::of_text(self.channels, self.side),
        };
        check("input", &[self.channels, self.side])?;
        for (index, named) in self.layers.iter().enumerate() {
            plan = self.slots_at(index, plan);
            let impossible = |why: String| impossible(&named.name, why);
            check_sizes(&named.name, &named.layer)?;
            let input = plan.features();
            if let Some(expected) = inputs_of(&named.layer)
                && expected != input.channels
            {
                let channels = input.channels;
                return Err(impossible(format!(
                    "it reads {expected} channels, and the layers before it make {channels}"
                )));
            }
            let layer: Arc<dyn LayerDesign> = match &named.layer {
                LayerGraph::Pool => {
                    plan = plan.pool();
                    continue;
                }
                LayerGraph::Seed(seed) => Arc::new(SeedDesign {
                    graph: seed.clone(),
                    topology: self.topology,
                }),
                graph => layer_of(graph).ok_or_else(|| custom(&named.name, "a layer"))?,
            };
            plan = plan.layer_of(named.name.clone(), layer);
        }
        let plan = self.slots_at(self.layers.len(), plan);
        match plan.outline().problems.first() {
            None => Ok(plan),
            Some(problem) => Err(HostError::Broken(problem.to_string()).into()),
        }
    }

    /// `plan` with the slots that are behind its first `boundary` layers.
    fn slots_at(&self, boundary: usize, plan: HostPlan) -> HostPlan {
        let here = self.slots.iter().filter(|(_, place)| *place == boundary);
        here.fold(plan, |plan, (slot, _)| plan.slot(slot.row, slot.col))
    }
}

fn custom(name: &str, what: &'static str) -> NetworkError {
    let name = name.into();
    NetworkError::Custom { name, what }
}

fn impossible(name: &str, why: String) -> NetworkError {
    let name = name.into();
    NetworkError::Impossible { name, why }
}

/// Every size must be one.
fn check(name: &str, sizes: &[i64]) -> Result<(), NetworkError> {
    match sizes.iter().find(|size| !(1..=LARGEST).contains(*size)) {
        None => Ok(()),
        Some(size) => Err(impossible(name, format!("{size} is no size; valid: 1 to {LARGEST}"))),
    }
}

fn check_kernel(name: &str, kernel: i64) -> Result<(), NetworkError> {
    if (1..=WIDEST_KERNEL).contains(&kernel) && kernel % 2 == 1 {
        return Ok(());
    }
    Err(impossible(
        name,
        format!("{kernel} is no kernel; valid: odd ones up to {WIDEST_KERNEL}"),
    ))
}

fn check_division(name: &str, what: &str, whole: i64, parts: i64) -> Result<(), NetworkError> {
    if whole % parts == 0 {
        return Ok(());
    }
    Err(impossible(
        name,
        format!("{whole} channels do not divide into {parts} {what}"),
    ))
}

fn check_sizes(name: &str, layer: &LayerGraph) -> Result<(), NetworkError> {
    match *layer {
        LayerGraph::Conv {
            inputs,
            outputs,
            kernel,
            stride,
            ..
        } => {
            check(name, &[inputs, outputs, stride])?;
            check_kernel(name, kernel)
        }
        LayerGraph::Pool => Ok(()),
        LayerGraph::MaxPool {
            kernel,
            stride,
            padding,
        } => {
            check(name, &[kernel, stride])?;
            match kernel <= WIDEST_KERNEL && (0..=kernel / 2).contains(&padding) {
                true => Ok(()),
                false => Err(impossible(
                    name,
                    format!(
                        "a pool {kernel} wide with padding {padding}; valid: up to {WIDEST_KERNEL}, and half of it"
                    ),
                )),
            }
        }
        LayerGraph::NormRelu { channels, .. } => check(name, &[channels]),
        LayerGraph::Residual {
            inputs,
            outputs,
            stride,
            ..
        } => check(name, &[inputs, outputs, stride]),
        LayerGraph::Head { inputs, classes } => check(name, &[inputs, classes]),
        LayerGraph::Embedding {
            vocab, width, block, ..
        } => check(name, &[vocab, width, block]),
        LayerGraph::Text {
            width, heads, block, ..
        } => {
            check(name, &[width, heads, block])?;
            check_division(name, "heads", width, heads)
        }
        LayerGraph::TextHead { width, vocab, .. } => check(name, &[width, vocab]),
        LayerGraph::Seed(ref seed) => check_seed(name, seed),
        LayerGraph::Custom => Err(custom(name, "a layer")),
    }
}

fn check_seed(name: &str, seed: &SeedGraph) -> Result<(), NetworkError> {
    let channels = seed.channels;
    check(name, &[channels])?;
    if !(0.0..=1.0).contains(&seed.amplitude) {
        return Err(impossible(
            name,
            format!("{} is no amplitude; valid: 0 to 1", seed.amplitude),
        ));
    }
    match &seed.module {
        ModuleGraph::Noop | ModuleGraph::Norm => Ok(()),
        ModuleGraph::SqueezeExcite { hidden } | ModuleGraph::TwoMaps { hidden, .. } => check(name, &[*hidden]),
        ModuleGraph::Attention { heads, window } => {
            check(name, &[*heads, window.unwrap_or(1)])?;
            check_division(name, "heads", channels, *heads)
        }
        ModuleGraph::Stack(layers) => {
            let mut width = channels;
            for layer in layers {
                width = check_stacked(name, width, *layer)?;
            }
            match width == channels {
                true => Ok(()),
                false => Err(impossible(name, format!("it makes {width} channels of {channels}"))),
            }
        }
        ModuleGraph::Custom => Err(custom(name, "a seed module")),
    }
}

/// Channels behind a layer that reads `width`.
fn check_stacked(name: &str, width: i64, layer: StackLayer) -> Result<i64, NetworkError> {
    let (reads, makes) = match layer {
        StackLayer::Conv {
            inputs,
            outputs,
            kernel,
            groups,
        } => {
            check(name, &[inputs, outputs, groups])?;
            check_kernel(name, kernel)?;
            check_division(name, "groups", inputs, groups)?;
            check_division(name, "groups", outputs, groups)?;
            (inputs, outputs)
        }
        StackLayer::Silu => (width, width),
        StackLayer::Norm { channels } => (channels, channels),
    };
    match reads == width {
        true => Ok(makes),
        false => Err(impossible(
            name,
            format!("a part of it reads {reads} channels where there are {width}"),
        )),
    }
}

/// Channels that a layer says it reads; `None` of one that reads any.
const fn inputs_of(layer: &LayerGraph) -> Option<i64> {
    Some(match *layer {
        LayerGraph::Conv { inputs, .. } | LayerGraph::Residual { inputs, .. } | LayerGraph::Head { inputs, .. } => {
            inputs
        }
        LayerGraph::NormRelu { channels, .. } => channels,
        LayerGraph::Embedding { vocab, .. } => vocab,
        LayerGraph::Text { width, .. } | LayerGraph::TextHead { width, .. } => width,
        LayerGraph::Seed(ref seed) => seed.channels,
        LayerGraph::Pool | LayerGraph::MaxPool { .. } | LayerGraph::Custom => return None,
    })
}
