//! The forward pass of a host with seeds grafted on, as training runs it (spec 01 §3.1).
//!
//! Only slots that contribute split the host's line of ops; a host without contributing seeds runs in one piece.

use tch::Tensor;

use super::{Host, HostError, Mode};
use crate::growth::{AlphaAlgorithm, SeedStage};
use crate::scenario::{Isolation, StageIsolation};
use crate::seed::{BlendError, SeedInstance};

/// What a contributing slot does to the features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UseKind {
    /// Passes the features on unchanged while the seed learns from their gradient.
    StraightThrough,
    Blend {
        /// In (0, 1].
        alpha: f64,
        algorithm: AlphaAlgorithm,
        /// The seed's gradient does not reach the host.
        isolated: bool,
    },
}

/// What a slot contributes to a pass in `mode`, or nothing: the one table of spec 01 §3.1 and §10.
pub fn use_kind(
    stage: SeedStage,
    alpha: f64,
    algorithm: AlphaAlgorithm,
    isolation: &StageIsolation,
    mode: Mode,
) -> Option<UseKind> {
    let blend = |isolation: Isolation| {
        (alpha > 0.0).then_some(UseKind::Blend {
            alpha,
            algorithm,
            isolated: isolation == Isolation::Isolated,
        })
    };
    let incubate = (mode == Mode::Train).then_some(UseKind::StraightThrough);
    match stage {
        SeedStage::Training => incubate,
        SeedStage::Blending => blend(isolation.blending).or(incubate),
        SeedStage::Holding => blend(isolation.holding),
        SeedStage::Fossilized => blend(isolation.fossilized),
        SeedStage::Unknown
        | SeedStage::Dormant
        | SeedStage::Germinated
        | SeedStage::Pruned
        | SeedStage::Embargoed
        | SeedStage::Resetting => None,
    }
}

/// A contributing slot.
pub struct SlotUse<'a> {
    /// Host ops before the slot.
    pub boundary: usize,
    pub instance: &'a SeedInstance,
    pub kind: UseKind,
}

/// Why a grafted model could not run.
#[derive(Debug, thiserror::Error)]
pub enum GraftError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Blend(#[from] BlendError),
}

/// Logits of `x` with the seeds in `slots`, which stand in execution order.
///
/// # Errors
/// [`GraftError`]; boundaries out of order are [`HostError::BadRange`].
pub fn forward(host: &dyn Host, slots: &[SlotUse], x: &Tensor, mode: Mode) -> Result<Tensor, GraftError> {
    let mut features = x.shallow_clone();
    let mut done = 0;
    for slot in slots {
        features = host.run(done..slot.boundary, &features, mode)?;
        features = match slot.kind {
            UseKind::StraightThrough => slot.instance.incubate(&features, mode)?,
            UseKind::Blend {
                alpha,
                algorithm,
                isolated,
            } => slot.instance.blend(&features, alpha, algorithm, isolated, mode)?,
        };
        done = slot.boundary;
    }
    Ok(host.run(done..host.num_ops(), &features, mode)?)
}
