//! A network with its tensors, its measurements and its origin.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use super::NetworkError;
use crate::graph::{Graph, LayerGraph, SeedGraph};
use crate::growth::{SeedStage, SlotId, Topology};
use crate::host::Host;
use crate::nn::{BATCH_NORM_MOMENTUM, Mode, NORM_EPS};
use crate::random::{Domain, Draw, RunRng};
use crate::scenario::HostNorm;
use crate::torch::{Backend, Inference, NoGrad, PlainTensor, copy_into};

/// Samples that are run at once.
const CHUNK: i64 = 512;

/// A network that can be used without the engine: host and committed seeds, with their buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct GrownNetwork {
    /// The layers, from input to logits.
    pub graph: Graph,
    /// Weights and buffers by `{layer}.{tensor}`: f32, of the shapes that PyTorch has for them.
    pub parameters: BTreeMap<String, PlainTensor>,
    /// The network's accuracy, loss and size.
    pub measures: Measures,
    /// The data that it has learnt from.
    pub data: DataCard,
    /// The maker of the network.
    pub origin: Origin,
    /// The seeds of this growth, in slot order.
    pub growth: Vec<SeedHistory>,
    /// Whole networks for other data, by name. They have these weights inside and values of their own for the rest.
    pub domains: BTreeMap<String, GrownNetwork>,
}

/// Accuracy and loss on a part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Percent of its samples, or for texts of its tokens.
    pub accuracy: f64,
    /// Nats per sample, or per token for texts; `None` where it was not measured of just this network.
    pub loss: Option<f64>,
    /// Samples, or for texts tokens.
    pub samples: u64,
}

/// Accuracy, loss and size of a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measures {
    /// Measures on the validation part, by which the network was chosen.
    pub validation: Option<Measured>,
    /// Measures on the test part, which nothing else has read.
    pub test: Option<Measured>,
    /// Trainable values.
    pub parameters: u64,
    /// Multiply-accumulates of a sample.
    pub macs: u64,
    /// The first of the host that it has grown from.
    pub host_parameters: u64,
    /// The second of the host that it has grown from.
    pub host_macs: u64,
}

/// Data that a network has learnt from, as far as a user who applies it needs to know them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataCard {
    /// Name of the task.
    pub task: String,
    /// Name of the data set.
    pub name: String,
    /// blake3 of all of its samples.
    pub hash: String,
    /// Names of classes in the order of the logits; empty where the files have none.
    pub classes: Vec<String>,
    /// Pixels p, bytes, are read as p·scale + offset: the scale of each channel.
    pub scale: Vec<f32>,
    /// The offset of each channel.
    pub offset: Vec<f32>,
    /// The pixel that means 1 in `task.normalise`.
    #[serde(default = "full_byte")]
    pub full: f64,
    /// Places of the validation samples (for texts, of windows) in the training files, from 0. `None` where files of their own
    /// bring them.
    pub validation: Option<Vec<u32>>,
    /// Places of the test samples, likewise.
    pub test: Option<Vec<u32>>,
}

const fn full_byte() -> f64 {
    255.0
}

/// The maker of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Version of the engine.
    pub engine: String,
    /// Name of the run's folder; `None` for a run in memory.
    pub run: Option<String>,
    /// Name of the scenario.
    pub scenario: String,
    /// blake3 of the scenario with every default.
    pub scenario_hash: String,
    /// The seed of all random draws.
    pub seed: u64,
    /// The round, from 0.
    pub round: u32,
    /// Index in the run.
    pub env: u32,
    /// Steps of training.
    pub steps: u32,
    /// Rollbacks by the governor.
    pub rollbacks: u32,
}

/// Worth of a seed to the network, with just the weights that are kept, in percentage points of the validation part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedMeasures {
    /// Accuracy of the network minus that without the seed.
    pub contribution: f64,
    /// Its Shapley value, its share of what all seeds of this growth add together.
    /// `None` where there were many seeds and no orders were sampled.
    pub shapley: Option<f64>,
    /// Standard error of that value, points: 0 if all orders were measured, `None` with a single pair of orders.
    pub shapley_error: Option<f64>,
}

impl fmt::Display for SeedMeasures {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "contributes {:+.2} points at the end", self.contribution)?;
        self.shapley.map_or(Ok(()), |share| write!(f, " (Shapley {share:+.2})"))
    }
}

/// The history of a seed that became a part of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedHistory {
    /// The slot in which it grew.
    pub slot: SlotId,
    /// Id of its blueprint.
    pub blueprint: String,
    /// Trainable values, with those of a gate.
    pub parameters: u64,
    /// The seed's worth to the network; `None` where its amplitude is 0.
    pub measures: Option<SeedMeasures>,
    /// Stages and the steps in which they were entered, from germination on.
    pub stages: Vec<(SeedStage, u32)>,
}

impl SeedHistory {
    /// Returns whether it was a part of the network from the first step on, and has not grown into it.
    pub fn was_there(&self) -> bool {
        let ends = (self.stages.first(), self.stages.last());
        matches!(ends, (Some((_, first)), Some((SeedStage::Committed, last))) if first == last)
    }
}

impl GrownNetwork {
    /// Returns whether it has a seed that has grown into it.
    pub fn has_grown(&self) -> bool {
        self.graph.seeds().count() > self.growth.iter().filter(|seed| seed.was_there()).count()
    }

    /// Returns whether it is the better of the two: by validation accuracy, of equals the smaller, then the first that was
    /// trained.
    pub fn is_better_than(&self, other: &Self) -> bool {
        let accuracy = |network: &Self| {
            network
                .measures
                .validation
                .map_or(f64::NEG_INFINITY, |part| part.accuracy)
        };
        let rest = |network: &Self| (network.measures.parameters, network.origin.round, network.origin.env);
        let by_accuracy = accuracy(other).total_cmp(&accuracy(self));
        by_accuracy.then_with(|| rest(self).cmp(&rest(other))).is_lt()
    }

    /// History of `seed`, which is layer `index`: it is of this growth if it is the last in its slot.
    pub fn history_of(&self, index: usize, seed: &SeedGraph) -> Option<&SeedHistory> {
        let mut later = self.graph.layers.iter().skip(index + 1);
        let is_last = !later.any(|layer| matches!(&layer.layer, LayerGraph::Seed(other) if other.slot == seed.slot));
        self.growth.iter().find(|known| known.slot == seed.slot && is_last)
    }

    /// The tensors in which it differs from `given`.
    pub fn own<'n>(&'n self, given: &Self) -> impl Iterator<Item = (&'n String, &'n PlainTensor)> {
        let tensors = self.parameters.iter();
        tensors.filter(|(name, tensor)| given.parameters.get(*name) != Some(*tensor))
    }

    /// Refuses a name that no domain next to those of `known` can have.
    ///
    /// # Errors
    /// A name that is taken, or isn't that of a Python variable.
    pub fn check_domain(known: Option<&Self>, name: &str) -> Result<(), NetworkError> {
        let is_taken = known.is_some_and(|network| network.domains.contains_key(name));
        let why = match (Self::is_domain_name(name), is_taken) {
            (false, _) => "valid: a small letter, then up to 99 small letters, digits and _",
            (true, true) => "the network has one of this name; give another",
            (true, false) => return Ok(()),
        };
        let name = name.into();
        Err(NetworkError::Domain { name, why })
    }

    /// Returns whether a domain may be called so, in files and in Python.
    pub(super) fn is_domain_name(name: &str) -> bool {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_first = |first: u8| first.is_ascii_lowercase();
        name.len() <= 100 && name.bytes().all(is_word) && name.bytes().next().is_some_and(is_first)
    }

    /// The domain that a batch of images is of, `None` for the given one: that whose first batch norm expects statistics nearest to those
    /// that the batch has there, by the divergence (Kullback and Leibler 1951) of normal distributions, mean over the channels. The
    /// outer `None`: the network does not begin with a convolution and a batch norm.
    ///
    /// # Errors
    /// Samples of another shape.
    pub fn domain_of(&self, samples: &Tensor) -> Result<Option<Option<&str>>, NetworkError> {
        let Some(first) = self.graph.layers.first() else {
            return Ok(None);
        };
        let LayerGraph::Conv {
            kernel,
            stride,
            bias,
            norm: Some(HostNorm::Batch),
            ..
        } = first.layer
        else {
            return Ok(None);
        };
        let of = |network: &Self, part: &str| -> Result<Tensor, NetworkError> {
            let name = format!("{}.{part}", first.name);
            let missing = || NetworkError::Tensors(vec![format!("`{name}` is missing")]);
            Ok(network.parameters.get(&name).ok_or_else(missing)?.to_tensor()?)
        };
        let _inference = Inference::new()?;
        let inputs = self.inputs(samples)?;
        // A domain may have its own first convolution.
        let distance = |network: &Self| -> Result<f64, NetworkError> {
            let weight = of(network, "conv.weight")?;
            let bias = bias.then(|| of(network, "conv.bias")).transpose()?;
            let features = inputs.f_conv2d(&weight, bias, stride, kernel / 2, 1, 1)?;
            let (variance, mean) = features.f_var_mean_dim([0_i64, 2, 3].as_slice(), false, false)?;
            let known = of(network, "norm.running_var")?.f_add_scalar(NORM_EPS)?;
            let apart = mean.f_sub(&of(network, "norm.running_mean")?)?.f_square()?;
            let ratio = variance.f_div(&known)?.f_add_scalar(1e-12)?.f_log()?;
            let divergence = apart.f_add(&variance)?.f_div(&known)?.f_sub(&ratio)?;
            Ok(f64::try_from(divergence.f_mean(Kind::Double)?)?)
        };
        let mut nearest = (distance(self)?, None);
        for (name, domain) in &self.domains {
            let distance = distance(domain)?;
            if distance < nearest.0 {
                nearest = (distance, Some(name.as_str()));
            }
        }
        Ok(Some(nearest.1))
    }

    /// Bytes of its tensors.
    pub fn bytes(&self) -> u64 {
        self.parameters.values().map(|tensor| tensor.bytes().len() as u64).sum()
    }

    /// A network that can be run on `backend`'s device.
    ///
    /// # Errors
    /// An invalid description, tensors that don't fit it, out of memory.
    pub fn build(&self, backend: Backend) -> Result<Box<dyn Host>, NetworkError> {
        let plan = self.graph.plan()?;
        let outline = plan.outline();
        let values: u64 = self.parameters.values().map(|tensor| tensor.numel() as u64).sum();
        if outline.parameters > values {
            // This comes before any allocation: a damaged description may ask for any amount.
            let parameters = outline.parameters;
            return Err(NetworkError::Tensors(vec![format!(
                "the layers have {parameters} parameters, but the tensors have {values} values"
            )]));
        }
        let host = plan.build(&mut RunRng::new(0, Domain::HostInit, &[]), backend)?;
        self.fill(&*host)?;
        Ok(host)
    }

    /// Copies the tensors into a host of the same layers.
    fn fill(&self, host: &dyn Host) -> Result<(), NetworkError> {
        let mut wrong = Vec::new();
        for param in host.params().all() {
            match self.parameters.get(&param.name) {
                Some(tensor) if tensor.fits(&param.tensor) => {}
                Some(tensor) => wrong.push(format!(
                    "`{}` is {tensor:?}, expected {:?}",
                    param.name,
                    param.tensor.size()
                )),
                None => wrong.push(format!("`{}` is missing", param.name)),
            }
        }
        let is_known = |name: &String| host.params().all().any(|param| param.name == *name);
        let superfluous = self.parameters.keys().filter(|name| !is_known(name));
        wrong.extend(superfluous.map(|name| format!("`{name}` doesn't belong to any layer")));
        if !wrong.is_empty() {
            return Err(NetworkError::Tensors(wrong));
        }
        for param in host.params().all() {
            copy_into(&param.tensor, &self.parameters[&param.name].to_tensor()?, false)?;
        }
        Ok(())
    }

    /// Logits of samples as files hold them, on the CPU: for images `u8 [n, height, width, channels]`, which are normalised
    /// as in training, `f32 [n, classes]`; for texts `i64 [n, tokens]`, `f32 [n, tokens, vocabulary]`.
    ///
    /// # Errors
    /// Samples of another shape, and those of [`Self::build`].
    pub fn predict(&self, samples: &Tensor) -> Result<Tensor, NetworkError> {
        let host = self.build(Backend::CPU)?;
        let _inference = Inference::new()?;
        let inputs = self.inputs(samples)?;
        let count = inputs.size()[0];
        let mut logits = Vec::new();
        for first in (0..count).step_by(CHUNK as usize) {
            let part = inputs.f_narrow(0, first, CHUNK.min(count - first))?;
            logits.push(host.run(0..host.num_ops(), &part, Mode::Eval)?);
        }
        Ok(Tensor::f_cat(&logits, 0)?)
    }

    /// Sets the running statistics of all batch norms to those of these samples: the mean over chunks of each chunk's statistics.
    /// After a training they are the averages of its last batches, and of weights that have changed since (Wu and Johnson 2021,
    /// arXiv:2105.07576).
    ///
    /// # Errors
    /// Samples of another shape, and those of [`Self::build`].
    pub fn measure_statistics(&mut self, samples: &Tensor) -> Result<(), NetworkError> {
        let host = self.build(Backend::CPU)?;
        let _no_grad = NoGrad::new();
        let inputs = self.inputs(samples)?;
        let chunks = inputs.f_chunk((inputs.size()[0] + CHUNK - 1) / CHUNK, 0)?;
        let mut sums: Vec<Tensor> = Vec::new();
        for chunk in &chunks {
            for buffer in host.params().buffers() {
                let _ = buffer.tensor.shallow_clone().f_zero_()?;
            }
            let _ = host.run(0..host.num_ops(), chunk, Mode::Train)?;
            for (place, buffer) in host.params().buffers().enumerate() {
                match sums.get_mut(place) {
                    Some(sum) => *sum = sum.f_add(&buffer.tensor)?,
                    None => sums.push(buffer.tensor.copy()),
                }
            }
        }
        let share = BATCH_NORM_MOMENTUM * chunks.len() as f64;
        for (buffer, sum) in host.params().buffers().zip(sums) {
            let measured = PlainTensor::of(&sum.f_div_scalar(share)?)?;
            self.parameters.insert(buffer.name.clone(), measured);
        }
        Ok(())
    }

    /// Images of drawn pixels, `u8 [count, height, width, channels]`, and their [logits](Self::predict).
    ///
    /// # Errors
    /// Those of [`Self::build`], and a network for texts.
    pub fn on_drawn_images(&self, count: i64) -> Result<[PlainTensor; 2], NetworkError> {
        let Graph { side, channels, .. } = self.graph;
        let shape = [count, side, side, channels];
        let mut rng = RunRng::new(0, Domain::HostInit, &[]);
        let pixels: Vec<u8> = (0..shape.iter().product()).map(|_: i64| rng.below(256) as u8).collect();
        let images = Tensor::f_from_slice(&pixels)?.f_view(shape)?;
        Ok([PlainTensor::of(&images)?, PlainTensor::of(&self.predict(&images)?)?])
    }

    /// Samples as the network reads them: of images `f32 [n, channels, height, width]`, channels-last in memory.
    fn inputs(&self, samples: &Tensor) -> Result<Tensor, NetworkError> {
        let Graph {
            topology,
            channels,
            side,
            ..
        } = self.graph;
        let size = samples.size();
        let (fits, expected) = match topology {
            Topology::Image => (
                matches!(size[..], [n, height, width, depth] if n > 0 && [height, width, depth] == [side, side, channels]),
                format!("u8 images [n, {side}, {side}, {channels}]"),
            ),
            Topology::Tokens => (
                matches!(size[..], [n, tokens] if n > 0 && (1..=side).contains(&tokens)),
                format!("i64 texts [n, up to {side}]"),
            ),
        };
        let kind = samples.kind();
        let is_kind = match topology {
            Topology::Image => kind == Kind::Uint8,
            Topology::Tokens => kind == Kind::Int64 || kind == Kind::Int,
        };
        if !fits || !is_kind {
            return Err(NetworkError::Samples { expected, found: size });
        }
        if topology == Topology::Tokens {
            return Ok(samples.shallow_clone());
        }
        let [scale, offset] = [&self.data.scale, &self.data.offset].map(|values| Tensor::f_from_slice(values));
        let x = samples.f_to_kind(Kind::Float)?.f_mul(&scale?)?.f_add_(&offset?)?;
        Ok(x.f_permute([0, 3, 1, 2])?)
    }
}

#[cfg(test)]
mod tests;
