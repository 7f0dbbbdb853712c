//! Builds a network from its description. Every size is checked before anything of it is allocated, since descriptions come
//! out of files.

use std::sync::Arc;

use super::NetworkError;
use super::seed_layer::SeedDesign;
use crate::files::counted;
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
            let channels = plan.features().channels;
            let expected = check_sizes(&named.name, &named.layer)?.unwrap_or(channels);
            require(expected == channels, &named.name, || {
                let reads = counted(expected, "channel");
                format!("it reads {reads}, but the layers before it make {channels}")
            })?;
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

    /// `plan` with the slots that follow its first `boundary` layers.
    fn slots_at(&self, boundary: usize, plan: HostPlan) -> HostPlan {
        let here = self.slots.iter().filter(|(_, place)| *place == boundary);
        here.fold(plan, |plan, (slot, _)| plan.slot(slot.row, slot.col))
    }
}

fn custom(name: &str, what: &'static str) -> NetworkError {
    let name = name.into();
    NetworkError::Custom { name, what }
}

fn require(holds: bool, name: &str, why: impl FnOnce() -> String) -> Result<(), NetworkError> {
    match holds {
        true => Ok(()),
        false => Err(NetworkError::Impossible {
            name: name.into(),
            why: why(),
        }),
    }
}

/// Every size must be one.
fn check(name: &str, sizes: &[i64]) -> Result<(), NetworkError> {
    let is_one = |size: &i64| (1..=LARGEST).contains(size);
    let no_size = |size: &i64| format!("{size} isn't a size; valid: 1 to {LARGEST}");
    sizes
        .iter()
        .try_for_each(|size| require(is_one(size), name, || no_size(size)))
}

fn check_kernel(name: &str, kernel: i64) -> Result<(), NetworkError> {
    let is_one = (1..=WIDEST_KERNEL).contains(&kernel) && kernel % 2 == 1;
    require(is_one, name, || {
        format!("{kernel} isn't a kernel; valid: odd ones up to {WIDEST_KERNEL}")
    })
}

fn check_division(name: &str, what: &str, whole: i64, parts: i64) -> Result<(), NetworkError> {
    require(whole % parts == 0, name, || {
        format!("{whole} channels do not divide into {parts} {what}")
    })
}

/// Channels that a layer says it reads; `None` for one that reads any.
fn check_sizes(name: &str, layer: &LayerGraph) -> Result<Option<i64>, NetworkError> {
    let sizes = |reads: i64, others: &[i64]| {
        check(name, &[reads])?;
        check(name, others)?;
        Ok(Some(reads))
    };
    match *layer {
        LayerGraph::Conv {
            inputs,
            outputs,
            kernel,
            stride,
            ..
        } => {
            check_kernel(name, kernel)?;
            sizes(inputs, &[outputs, stride])
        }
        LayerGraph::Pool => Ok(None),
        LayerGraph::MaxPool {
            kernel,
            stride,
            padding,
        } => {
            check(name, &[kernel, stride])?;
            let is_one = kernel <= WIDEST_KERNEL && (0..=kernel / 2).contains(&padding);
            require(is_one, name, || {
                format!("a pool {kernel} wide with padding {padding}; valid: up to {WIDEST_KERNEL}, and half of it")
            })?;
            Ok(None)
        }
        LayerGraph::NormRelu { channels, .. } => sizes(channels, &[]),
        LayerGraph::Residual {
            inputs,
            outputs,
            stride,
            ..
        } => sizes(inputs, &[outputs, stride]),
        LayerGraph::Head { inputs, classes } => sizes(inputs, &[classes]),
        LayerGraph::Embedding {
            vocab, width, block, ..
        } => sizes(vocab, &[width, block]),
        LayerGraph::Text {
            width, heads, block, ..
        } => {
            let reads = sizes(width, &[heads, block])?;
            check_division(name, "heads", width, heads)?;
            Ok(reads)
        }
        LayerGraph::TextHead { width, vocab, .. } => sizes(width, &[vocab]),
        LayerGraph::Seed(ref seed) => {
            check_seed(name, seed)?;
            Ok(Some(seed.channels))
        }
        LayerGraph::Custom => Err(custom(name, "a layer")),
    }
}

fn check_seed(name: &str, seed: &SeedGraph) -> Result<(), NetworkError> {
    let channels = seed.channels;
    check(name, &[channels])?;
    require((0.0..=1.0).contains(&seed.amplitude), name, || {
        format!("{} isn't an amplitude; valid: 0 to 1", seed.amplitude)
    })?;
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
            require(width == channels, name, || {
                format!("it turns {channels} channels into {width}")
            })
        }
        ModuleGraph::Custom => Err(custom(name, "a seed module")),
    }
}

/// Channels after a layer that reads `width`.
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
    require(reads == width, name, || {
        format!("a part of it reads {reads} channels, but gets {width}")
    })?;
    Ok(makes)
}
