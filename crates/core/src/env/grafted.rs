//! The forward pass of a host with seeds grafted on, as training runs it.
//!
//! Only slots that contribute split the host's line of ops. A host without contributing seeds runs in one piece.

use tch::Tensor;

use crate::growth::{AlphaAlgorithm, SeedStage};
use crate::host::{Host, HostError};
use crate::nn::Mode;
use crate::seed::{BlendError, Isolation, SeedInstance};

/// The effect of a contributing slot on the features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GraftKind {
    /// Passes the features on unchanged while the seed learns from their gradient.
    StraightThrough,
    /// Blends the residual of the seed into the features.
    Blend {
        /// In (0, 1].
        alpha: f64,
        /// Blend operator.
        algorithm: AlphaAlgorithm,
        /// The seed's gradient does not reach the host.
        isolated: bool,
    },
}

impl GraftKind {
    /// The same at another amplitude, where it has one.
    pub fn at_amplitude(self, alpha: f64) -> Self {
        match self {
            Self::StraightThrough => self,
            Self::Blend {
                algorithm, isolated, ..
            } => Self::Blend {
                alpha,
                algorithm,
                isolated,
            },
        }
    }
}

/// A slot's contribution to a pass in `mode`, by the stage of its seed. `None` if there is none.
pub fn graft_kind(
    stage: SeedStage,
    alpha: f64,
    algorithm: AlphaAlgorithm,
    isolation: Isolation,
    mode: Mode,
) -> Option<GraftKind> {
    let blend = |isolated| {
        (alpha > 0.0).then_some(GraftKind::Blend {
            alpha,
            algorithm,
            isolated,
        })
    };
    let isolated = isolation == Isolation::Isolated;
    let incubate = (mode == Mode::Train).then_some(GraftKind::StraightThrough);
    match stage {
        SeedStage::Training => incubate,
        SeedStage::Blending => blend(isolated).or(incubate),
        SeedStage::Holding => blend(isolated),
        SeedStage::Committed => blend(false),
        SeedStage::Unknown
        | SeedStage::Dormant
        | SeedStage::Germinated
        | SeedStage::Pruned
        | SeedStage::Embargoed
        | SeedStage::Resetting => None,
    }
}

/// A seed where it meets the features.
pub struct Graft<'a> {
    /// Host ops before the slot.
    pub boundary: usize,
    /// The seed.
    pub instance: &'a SeedInstance,
    /// Its effect on the features.
    pub kind: GraftKind,
}

/// The reason why a grafted model could not run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum GraftError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Blend(#[from] BlendError),
}

/// Logits of `x` with the seeds of `grafts`, which are in execution order.
///
/// # Errors
/// [`GraftError`]. Boundaries out of order are [`HostError::BadRange`].
pub fn forward(host: &dyn Host, grafts: &[Graft], x: &Tensor, mode: Mode) -> Result<Tensor, GraftError> {
    let mut features = x.shallow_clone();
    let mut done = 0;
    for graft in grafts {
        features = host.run(done..graft.boundary, &features, mode)?;
        features = match graft.kind {
            GraftKind::StraightThrough => graft.instance.incubate(&features, mode)?,
            GraftKind::Blend {
                alpha,
                algorithm,
                isolated,
            } => graft.instance.blend(&features, alpha, algorithm, isolated, mode)?,
        };
        done = graft.boundary;
    }
    Ok(host.run(done..host.num_ops(), &features, mode)?)
}

#[cfg(test)]
mod tests;
