//! Grown networks outside their env: built from their [`Graph`](crate::graph::Graph), applied to data and kept in files. The
//! hosts that scenarios choose, including such networks, and given weights are here too.
//!
//! A network that is taken out of an env is a [`GrownNetwork`]: its layers, its tensors, and its origin. It is built
//! like a host, and a seed is a layer like any other, so it can also be grown further.

mod seed_layer;
mod build;
mod grown;
mod file;
mod registry;
mod weights;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, reason = "only tests use it, and they fail where it does")]
pub mod fixtures;

pub use grown::{DataCard, GrownNetwork, Measured, Measures, Origin, SeedHistory, SeedMeasures};

pub use registry::HostRegistry;
pub use weights::GivenWeights;

use std::path::PathBuf;

use tch::TchError;

use crate::health::FileError;
use crate::host::HostError;
use crate::torch::TorchError;
use file::some_of;

/// The reason why a network cannot be built, applied, written or read. If it concerns a scenario's host or weights, the run
/// ends before anything is trained. A file that was to be written is not there, or is as it was.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum NetworkError {
    /// A layer or a seed of an application: only its sources say what it computes.
    #[error(
        "layer `{name}` of the network is {what} of an application, which does not say what it computes; implement \
         `graph` for it"
    )]
    Custom { name: String, what: &'static str },
    /// The description is not one of a network: written by hand, or damaged.
    #[error("layer `{name}` of the network cannot be built: {why}")]
    Impossible { name: String, why: String },
    /// Tensors that do not belong to the layers, all of them.
    #[error("the tensors of the network do not fit its layers: {}", some_of(.0, "; "))]
    Tensors(Vec<String>),
    /// Samples of a shape that the network doesn't read.
    #[error("the network reads {expected}, not {found:?}")]
    Samples { expected: String, found: Vec<i64> },
    /// A file that a scenario names is not there.
    #[error(
        "no file or folder {name}; looked at {}",
        .looked_at.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Missing { name: String, looked_at: Vec<PathBuf> },
    /// Given weights that are of another host: its kind, where the tensors show it, and all that does not fit.
    #[error(
        "the weights in {} do not fit the host: {}; missing: {}. Leave out the tensors that the host is to draw; \
         their names are in docs/reference/hosts.md",
        path.display(), some_of(.wrong, "; "), some_of(.absent, ", ")
    )]
    Weights {
        path: PathBuf,
        fitting: usize,
        wrong: Vec<String>,
        absent: Vec<String>,
    },
    /// Weights of a training that has diverged, or damaged ones.
    #[error("no network can start from {path}: `{name}` has {value}; valid: finite numbers, variances of 0 or more")]
    Value { path: PathBuf, name: String, value: f32 },
    /// Layers would be frozen as they are drawn.
    #[error(
        "task.freeze: {weights} has nothing for {}, which would keep its random weights; freeze layers that it has",
        some_of(.drawn, ", ")
    )]
    Frozen { weights: String, drawn: Vec<String> },
    /// A name that a domain cannot have.
    #[error("the domain {name:?}: {why}")]
    Domain { name: String, why: &'static str },
    /// Reading a pickle runs the code in it.
    #[error(
        "{} is a PyTorch pickle, which is a program; save the weights as tensors: \
         safetensors.torch.save_file(model.state_dict(), \"weights.safetensors\")",
        .0.display()
    )]
    Pickle(PathBuf),
    /// A file of another kind, or of a later version.
    #[error("{path} isn't a network that this version reads: {}", .why.chars().take(200).collect::<String>())]
    NotOne { path: PathBuf, why: String },
    /// The file differs from the one that was written.
    #[error("{0} is damaged: it changed after it was written")]
    Damaged(PathBuf),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The host cannot be built or run.
    #[error(transparent)]
    Host(#[from] HostError),
    /// libtorch failed.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl From<TchError> for NetworkError {
    fn from(error: TchError) -> Self {
        Self::Torch(error.into())
    }
}
