//! Field `task.host`: the network that is trained, and its outline.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::growth::{InjectionSpec, Topology};
use crate::schema::{Described, Kind, Settings, choice, range, section};

choice! {
    /// Network that an env trains: a family with its shape, or a name.
    #[derive(Eq)]
    pub enum HostChoice {
        /// blocks of convolution, norm and ReLU, max pools, linear head
        Cnn(CnnSpec),
        /// stages of residual blocks of two 3x3 convolutions
        Resnet(ResnetSpec),
        /// stages of 3x3 convolutions, a max pool after each
        Vgg(VggSpec),
        /// language model of attention blocks
        Transformer(TransformerSpec),
        /// a host with a name, from `simic-engine list hosts`
        Named(HostName),
        /// a host registered by a plugin, with its settings
        Custom {
            /// Name of the host.
            name: HostName;
            /// Settings that the host declares.
            settings: Settings;
        },
        /// a network kept by a run, including its seeds: the path of its file, or of the folder of an export
        Grown(String),
    }
}

impl HostChoice {
    /// Its name in messages: the registered name, or the family.
    pub fn label(&self) -> &str {
        match self {
            Self::Named(HostName(name))
            | Self::Custom {
                name: HostName(name), ..
            } => name,
            family => family.name(),
        }
    }
}

/// Returns whether `name`, of `task.freeze`, stands for the layer that is called `layer`.
pub fn stands_for(name: &str, layer: &str) -> bool {
    let below = layer.strip_prefix(name);
    name == "all" || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The name in `task.freeze` for the running statistics of all batch norms.
pub const STATISTICS: &str = "statistics";

/// The part of `layer` that `name`, of `task.freeze`, names: a tensor, or those below a name; `None` if it names nothing in it.
pub fn part_of<'n>(name: &'n str, layer: &str) -> Option<&'n str> {
    name.strip_prefix(layer)?.strip_prefix('.')
}

/// The name under which a host is registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostName(pub String);

impl Described for HostName {
    const KIND: Kind = range::HOST;
}

section! {
    /// Shape of the convolutional host.
    #[derive(Eq)]
    pub struct CnnSpec {
        /// Channels of the input; must match the data.
        in_channels: i64 = 3, integer(1, 1024);
        /// Channels of the first block; each further block doubles them.
        base_channels: i64 = 32, integer(1, 4096);
        /// Blocks of convolution, norm and ReLU.
        n_blocks: usize = 3, integer(2, 12);
        /// Kernel size of every convolution; must be odd.
        kernel_size: i64 = 3, integer(1, 31);
        /// Number of blocks, from the first on, that a 2x2 max pool follows; at most n_blocks.
        pool_layers: usize = 3, integer(0, 12);
        /// Height and width of the input; must match the data.
        input_hw: i64 = 32, integer(1, 4096);
        /// Normalisation after each convolution.
        norm: HostNorm = HostNorm::Batch;
    }
}

section! {
    /// Shape of a residual host.
    #[derive(Eq)]
    pub struct ResnetSpec {
        /// Channels of the input; must match the data.
        in_channels: i64 = 3, integer(1, 1024);
        /// Channels of the first stage; each further stage doubles them.
        base_channels: i64 = 16, integer(1, 4096);
        /// Residual blocks of each stage; every stage but the first halves height and width.
        blocks: Vec<usize> = vec![3, 3, 3], integer(1, 64);
        /// Shortcut around a block that changes the shape.
        shortcut: Shortcut = Shortcut::Pad;
        /// Puts norm and ReLU before the convolutions, not after them.
        pre_activation: bool = false;
        /// Height and width of the input; must match the data.
        input_hw: i64 = 32, integer(1, 4096);
        /// Normalisation.
        norm: HostNorm = HostNorm::Batch;
        /// Layers before the first stage.
        stem: Stem = Stem::Small;
    }
}

section! {
    /// Shape of a VGG host.
    #[derive(Eq)]
    pub struct VggSpec {
        /// Channels of the input; must match the data.
        in_channels: i64 = 3, integer(1, 1024);
        /// Channels of the first stage; each further stage doubles them, up to eight times the first.
        base_channels: i64 = 64, integer(1, 4096);
        /// Convolutions of each stage; a 2x2 max pool follows every stage.
        blocks: Vec<usize> = vec![1, 1, 2, 2, 2], integer(1, 64);
        /// Height and width of the input; must match the data.
        input_hw: i64 = 32, integer(1, 4096);
        /// Normalisation after each convolution.
        norm: HostNorm = HostNorm::Batch;
    }
}

section! {
    /// Shape of a language model. Its vocabulary is the task's.
    #[derive(Eq)]
    pub struct TransformerSpec {
        /// Channels of the features, a multiple of heads.
        width: i64 = 64, integer(1, 4096);
        /// Heads of each attention.
        heads: i64 = 4, integer(1, 256);
        /// Blocks of attention and two linear maps, in three groups with a slot after each.
        layers: usize = 3, integer(1, 64);
        /// Largest number of tokens at a time; at least the data's block.
        block: i64 = 64, integer(1, 65536);
        /// Encoding of the positions of tokens.
        positions: Positions = Positions::Learned;
    }
}

choice! {
    /// Encoding of the positions of tokens.
    #[derive(Copy, Eq)]
    pub enum Positions {
        /// a learned vector for each position is added to the embedding
        Learned,
        /// queries and keys are rotated by their position; no parameters
        Rotary,
    }
}

choice! {
    /// Normalisation of a host's features.
    #[derive(Copy, Eq)]
    pub enum HostNorm {
        /// batch norm: running statistics, folded into the convolutions for validation
        Batch,
        /// group norm: each sample by itself, the same in training and validation
        Group,
    }
}

choice! {
    /// Shortcut around a residual block that changes the shape.
    #[derive(Copy, Eq)]
    pub enum Shortcut {
        /// every second pixel, zeros for the new channels; no parameters
        Pad,
        /// a strided 1x1 convolution
        Projection,
    }
}

choice! {
    /// Layers before the stages of a residual host.
    #[derive(Copy, Eq)]
    pub enum Stem {
        /// a 3x3 convolution
        Small,
        /// a 7x7 convolution and a 3x3 max pool, each with stride 2, for large images
        Large,
    }
}

/// The outline of a host, known without building it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOutline {
    /// Kind of its input.
    pub topology: Topology,
    /// Channels of the images that it reads, or tokens of the vocabulary for texts.
    pub channels: i64,
    /// Height and width of the images that it reads, or the largest number of tokens at a time for texts.
    pub side: i64,
    /// Trainable values.
    pub parameters: u64,
    /// Ops of its line, including the head.
    pub ops: usize,
    /// Names of the layers that have parameters.
    pub layers: Vec<String>,
    /// Values that each op outputs, per sample.
    pub op_outputs: Vec<u64>,
    /// Places where it can grow, in the policy's order.
    pub injections: Vec<InjectionSpec>,
    /// Batch norms: the op, and height and width of the smallest features that it normalises.
    pub batch_norms: Vec<(String, i64)>,
    /// Reasons for which it cannot be built; none if it can.
    pub problems: Vec<HostProblem>,
}

impl HostOutline {
    /// Returns whether `name`, of `task.freeze`, stands for a layer that it has, for tensors of one, or for all statistics.
    pub fn has_layer(&self, name: &str) -> bool {
        let is_of = |layer: &String| stands_for(name, layer) || part_of(name, layer).is_some();
        name == STATISTICS || self.layers.iter().any(is_of)
    }

    /// Places where it can grow, in the order of execution.
    pub fn by_depth(&self) -> impl Iterator<Item = &InjectionSpec> {
        let mut places: Vec<&InjectionSpec> = self.injections.iter().collect();
        places.sort_unstable_by_key(|place| place.boundary);
        places.into_iter()
    }

    /// Channels along the line as they change, e.g. `3->8,16,32`.
    pub fn widths(&self) -> String {
        let mut widths: Vec<i64> = self.by_depth().map(|place| place.channels).collect();
        widths.dedup();
        let widths: Vec<String> = widths.iter().map(i64::to_string).collect();
        format!("{}->{}", self.channels, widths.join(","))
    }
}

/// Reason for which a host cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostProblem {
    /// Fields of the host's shape that cause it, the likeliest one first; none for a host without fields.
    pub fields: Vec<&'static str>,
    /// The fault, and what is valid.
    pub message: String,
}

impl fmt::Display for HostProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fields.first() {
            Some(field) => write!(f, "{field}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
