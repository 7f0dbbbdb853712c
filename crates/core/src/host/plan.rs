//! The plan of a host: its line of layers as plain data, from which everything is known that does not need weights.

use std::sync::Arc;

use tch::{Kind, TchError, Tensor};

use super::layer::Frozen;
use super::line::{BuiltHost, Op};
use super::{Features, Head, Host, HostError, InjectionSpec, LayerDesign, OpCost};
use crate::files::counted;
use crate::graph::{Graph, LayerGraph, NamedLayer};
use crate::growth::{SlotId, Topology};
use crate::kernels::tile_side;
use crate::nn::{Mode, ParamSet};
use crate::random::RunRng;
use crate::scenario::{HostOutline, HostProblem, STATISTICS, part_of, stands_for};
use crate::torch::{Backend, NoGrad};

/// A host before it is built: what it reads, its ops in order, and where it can grow.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use simic_engine::extend::Conv;
/// use simic_engine::prelude::HostPlan;
///
/// let plan = HostPlan::new(1, 8)
///     .layer("stem", Conv::new(8, 3))
///     .pool()
///     .slot(0, 0)
///     .layer("body", Conv::new(16, 3))
///     .slot(0, 1)
///     .head(10);
/// let outline = plan.outline();
/// assert_eq!(outline.parameters, 72 + 16 + 1_152 + 32 + 170);
/// assert_eq!(outline.injections[1].boundary, 3);
/// assert!(outline.problems.is_empty());
/// ```
#[derive(Clone)]
pub struct HostPlan {
    topology: Topology,
    input: Features,
    ops: Vec<PlannedOp>,
    /// With the ops in front of each, and the channels there.
    slots: Vec<(SlotId, usize, i64)>,
}

#[derive(Clone)]
struct PlannedOp {
    name: String,
    input: Features,
    output: Features,
    /// `None` for a pool.
    layer: Option<Arc<dyn LayerDesign>>,
    frozen: Freeze,
}

/// The parts that training leaves unchanged.
#[derive(Clone, Default)]
struct Freeze {
    /// All weights of the layer.
    is_whole: bool,
    /// Running statistics, by which batch norms go in training, too.
    has_statistics: bool,
    /// Tensors and groups of them, by their names in the layer.
    parts: Vec<String>,
}

impl HostPlan {
    /// A host that reads square images of `channels` channels, `side` pixels high and wide.
    pub const fn new(channels: i64, side: i64) -> Self {
        Self::reading(Topology::Image, Features { channels, side })
    }

    /// A host that reads texts of up to `block` tokens, each in `0..vocab`. Its layers see features whose `side` is the
    /// number of tokens; the last of them makes `vocab` logits a token.
    pub const fn of_text(vocab: i64, block: i64) -> Self {
        let input = Features {
            channels: vocab,
            side: block,
        };
        Self::reading(Topology::Tokens, input)
    }

    const fn reading(topology: Topology, input: Features) -> Self {
        Self {
            topology,
            input,
            ops: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// Adds an op. The names of its tensors begin with `name`, which no other op has.
    #[must_use]
    pub fn layer(self, name: impl Into<String>, layer: impl LayerDesign + 'static) -> Self {
        self.layer_of(name, Arc::new(layer))
    }

    /// As [`Self::layer`].
    #[must_use]
    pub fn layer_of(mut self, name: impl Into<String>, layer: Arc<dyn LayerDesign>) -> Self {
        let output = layer.output(self.features());
        self.push(name.into(), output, Some(layer));
        self
    }

    /// Adds a 2×2 max pool with stride 2, which leaves out a last odd row and column.
    #[must_use]
    pub fn pool(mut self) -> Self {
        let input = self.features();
        let side = input.side / 2;
        self.push("pool".into(), Features { side, ..input }, None);
        self
    }

    fn push(&mut self, name: String, output: Features, layer: Option<Arc<dyn LayerDesign>>) {
        let input = self.features();
        self.ops.push(PlannedOp {
            name,
            input,
            output,
            layer,
            frozen: Freeze::default(),
        });
    }

    /// Lets a seed grow here, after the ops so far, in the slot `r{row}c{col}`.
    #[must_use]
    pub fn slot(mut self, row: u16, col: u16) -> Self {
        let channels = self.features().channels;
        self.slots.push((SlotId::new(row, col), self.ops.len(), channels));
        self
    }

    /// Ends the line with a [`Head`]; the tensors are `head.weight` and `head.bias`.
    #[must_use]
    pub fn head(self, classes: i64) -> Self {
        self.layer("head", Head { classes })
    }

    /// Excludes from training what `names` stand for, as in `task.freeze`: layers with their running statistics, tensors of
    /// layers, or [`STATISTICS`].
    #[must_use]
    pub fn frozen(mut self, names: &[String]) -> Self {
        for op in &mut self.ops {
            let is_whole = names.iter().any(|name| stands_for(name, &op.name));
            let parts = names.iter().filter(|name| part_of(name, &op.name).is_some());
            op.frozen = Freeze {
                is_whole,
                has_statistics: is_whole || names.iter().any(|name| name == STATISTICS),
                parts: parts.cloned().collect(),
            };
        }
        self
    }

    /// Kind of the host's features.
    pub const fn topology(&self) -> Topology {
        self.topology
    }

    /// The images that the host reads; for texts the vocabulary and the most tokens at a time.
    pub const fn input(&self) -> Features {
        self.input
    }

    /// The features after the ops so far.
    pub fn features(&self) -> Features {
        self.ops.last().map_or(self.input, |op| op.output)
    }

    /// Parameters, costs and slots of the host.
    pub fn outline(&self) -> HostOutline {
        let layers = || self.ops.iter().filter_map(|op| Some((op, op.layer.as_ref()?)));
        let parameters = layers().map(|(op, layer)| layer.parameters(op.input));
        let with_parameters = layers().filter(|(op, layer)| layer.parameters(op.input) > 0);
        let batch_norms = layers().filter_map(|(op, layer)| Some((op.name.clone(), layer.batch_norm_side(op.input)?)));
        HostOutline {
            topology: self.topology,
            channels: self.input.channels,
            side: self.input.side,
            parameters: parameters.fold(0, u64::saturating_add),
            ops: self.ops.len(),
            layers: with_parameters.map(|(op, _)| op.name.clone()).collect(),
            op_outputs: self.ops.iter().map(|op| self.values(op.output)).collect(),
            injections: self.injection_specs(),
            batch_norms: batch_norms.collect(),
            problems: self.problems(),
        }
    }

    /// The convolutions of the host's own layers as a CPU computes them in f32: each with its algorithm, in order. For example
    /// `3→8 at 32x32 by direct sums, 8→16 at 16x16 by tiles of 4x4`.
    pub fn convolutions(&self) -> String {
        let mut all: Vec<String> = Vec::new();
        let mut add = |side, inputs, outputs, kernel, stride| {
            let way = match tile_side(side, inputs, outputs, kernel, stride) {
                None => "libtorch".into(),
                Some(0) => "direct sums".into(),
                Some(tile) => format!("tiles of {tile}x{tile}"),
            };
            let one = format!("{inputs}→{outputs} at {side}x{side} by {way}");
            if !all.contains(&one) {
                all.push(one);
            }
        };
        for op in &self.ops {
            let side = op.input.side;
            match op.layer.as_ref().map(|layer| layer.graph(op.input)) {
                Some(LayerGraph::Conv {
                    inputs,
                    outputs,
                    kernel,
                    stride,
                    ..
                }) => add(side, inputs, outputs, kernel, stride),
                Some(LayerGraph::Residual {
                    inputs,
                    outputs,
                    stride,
                    ..
                }) => {
                    add(side, inputs, outputs, 3, stride);
                    add(op.output.side, outputs, outputs, 3, 1);
                }
                _ => {}
            }
        }
        all.join(", ")
    }

    /// The host as plain data.
    pub fn graph(&self) -> Graph {
        let layer = |op: &PlannedOp| NamedLayer {
            name: op.name.clone(),
            layer: op
                .layer
                .as_ref()
                .map_or(LayerGraph::Pool, |layer| layer.graph(op.input)),
        };
        Graph {
            topology: self.topology,
            channels: self.input.channels,
            side: self.input.side,
            layers: self.ops.iter().map(layer).collect(),
            slots: self.slots.iter().map(|&(slot, boundary, _)| (slot, boundary)).collect(),
        }
    }

    /// The places where the host can grow, sorted by `order`.
    pub fn injection_specs(&self) -> Vec<InjectionSpec> {
        let mut slots = self.slots.clone();
        slots.sort_unstable();
        let numbered = (0..).zip(slots);
        let spec = |(order, (slot, boundary, channels))| InjectionSpec {
            slot,
            channels,
            boundary,
            order,
        };
        numbered.map(spec).collect()
    }

    /// Slots after layers, not after pools, in the order of execution.
    pub fn slots_after_layers(&self) -> Vec<SlotId> {
        let is_layer = |boundary: usize| self.ops[..boundary].last().is_some_and(|op| op.layer.is_some());
        let mut slots: Vec<_> = self
            .slots
            .iter()
            .filter(|slot| slot.1 <= self.ops.len() && is_layer(slot.1))
            .collect();
        slots.sort_by_key(|(_, boundary, _)| *boundary);
        slots.into_iter().map(|(slot, ..)| *slot).collect()
    }

    /// Faults of the line of ops, for layers of any kind.
    fn problems(&self) -> Vec<HostProblem> {
        let mut messages = Vec::new();
        if self.ops.len() < 2 {
            messages.push(format!(
                "the host has {}; it needs at least 2, and the last is its head",
                counted(self.ops.len(), "op")
            ));
        }
        for (index, op) in self.ops.iter().enumerate() {
            let Features { channels, side } = op.output;
            if channels < 1 || side < 1 {
                messages.push(format!(
                    "op {} of the host leaves {channels} channels of {side}x{side} pixels; at least one of each is needed",
                    op.name
                ));
                break;
            }
            let is_same = |other: &PlannedOp| other.layer.is_some() && other.name == op.name;
            if op.layer.is_some() && self.ops[..index].iter().any(is_same) {
                messages.push(format!(
                    "two ops of the host are called {}; give each a different name",
                    op.name
                ));
            }
        }
        for (index, (slot, boundary, _)) in self.slots.iter().enumerate() {
            if !(1..self.ops.len()).contains(boundary) {
                messages.push(format!(
                    "slot {slot} of the host is before its first op or after its head; valid: between two ops"
                ));
            }
            for (other, taken, _) in &self.slots[..index] {
                if other == slot {
                    messages.push(format!("the host has two slots {slot}; rename one of them"));
                } else if taken == boundary {
                    messages.push(format!(
                        "slots {other} and {slot} of the host are after the same op; keep one of them"
                    ));
                }
            }
        }
        let problem = |message| HostProblem {
            fields: Vec::new(),
            message,
        };
        messages.into_iter().map(problem).collect()
    }

    /// Places where an op computes the same.
    fn positions(&self, features: Features) -> u64 {
        match self.topology {
            Topology::Image => features.positions() as u64,
            Topology::Tokens => features.side as u64,
        }
    }

    /// Numbers that an op makes of a sample.
    fn values(&self, features: Features) -> u64 {
        self.positions(features)
            .saturating_mul(features.channels.max(0).unsigned_abs())
    }

    /// Cost of each op, per sample.
    pub fn op_costs(&self) -> Vec<OpCost> {
        let cost = |op: &PlannedOp| OpCost {
            macs: op.layer.as_ref().map_or(0, |layer| layer.macs(op.input)),
            positions: self.positions(op.output),
            is_frozen: op.frozen.is_whole,
        };
        self.ops.iter().map(cost).collect()
    }

    /// Allocates the host on `backend`'s device, draws its weights, and tries it on an empty sample.
    ///
    /// # Errors
    /// [`HostError::Broken`] if the line has a fault or a layer is not what its design says, [`HostError::Torch`] if the
    /// device refuses.
    pub fn build(&self, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn Host>, HostError> {
        if let Some(problem) = self.problems().first() {
            return Err(HostError::Broken(problem.to_string()));
        }
        let mut params = ParamSet::new(backend);
        let mut ops: Vec<Op> = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            ops.push(match &op.layer {
                None => Op::Pool,
                Some(layer) => {
                    let (before, trained) = (params.count(), params.trainable().len());
                    let built = layer.build(op.input, &op.name, &mut params)?;
                    let (declared, actual) = (layer.parameters(op.input), params.count() - before);
                    if declared != actual {
                        let name = &op.name;
                        return Err(HostError::Broken(format!(
                            "op {name} declares {declared} parameters, but has {actual}"
                        )));
                    }
                    let Freeze { is_whole, parts, .. } = &op.frozen;
                    let added = &params.trainable()[trained..];
                    let is_there = |part: &&String| added.iter().any(|param| stands_for(part, &param.name));
                    if let Some(part) = parts.iter().find(|part| !is_there(part)) {
                        let names: Vec<&str> = added.iter().map(|param| param.name.as_str()).collect();
                        let names = names.join(", ");
                        return Err(HostError::Broken(format!(
                            "task.freeze: the host has no {part}; valid: {names}"
                        )));
                    }
                    params.freeze_after(trained, |name| {
                        *is_whole || parts.iter().any(|part| stands_for(part, name))
                    })?;
                    match op.frozen.has_statistics {
                        true => Op::Layer(Box::new(Frozen(built))),
                        false => Op::Layer(built),
                    }
                }
            });
        }
        params.initialise(rng)?;
        let host = BuiltHost {
            ops,
            costs: self.op_costs(),
            injections: self.injection_specs(),
            params,
        };
        self.try_out(&host, backend)?;
        Ok(Box::new(host))
    }

    /// Checks every op against the shape that its design declares.
    fn try_out(&self, host: &BuiltHost, backend: Backend) -> Result<(), HostError> {
        let _no_grad = NoGrad::new();
        let mut features = self.empty_sample(backend)?;
        for (index, op) in self.ops.iter().enumerate() {
            features = host.run(index..index + 1, &features, Mode::Eval)?;
            let Features { channels, side } = op.output;
            let is_last = index + 1 == self.ops.len();
            let declared = match self.topology {
                Topology::Image if is_last => vec![1, channels],
                Topology::Image => vec![1, channels, side, side],
                Topology::Tokens => vec![1, side, channels],
            };
            if features.size() != declared {
                return Err(HostError::Broken(format!(
                    "op {} declares an output of {declared:?} for one sample, but makes {:?}",
                    op.name,
                    features.size()
                )));
            }
        }
        Ok(())
    }

    /// A sample of zeros.
    fn empty_sample(&self, backend: Backend) -> Result<Tensor, TchError> {
        let Features { channels, side } = self.input;
        match self.topology {
            Topology::Image => {
                let nhwc = Tensor::f_zeros([1, side, side, channels], (Kind::Float, backend.device))?;
                nhwc.f_permute([0, 3, 1, 2])
            }
            Topology::Tokens => Tensor::f_zeros([1, side], (Kind::Int, backend.device)),
        }
    }
}

#[cfg(test)]
mod tests;
