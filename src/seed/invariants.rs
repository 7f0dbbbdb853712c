//! What must hold of every record at all times: checked after each change in debug builds, and on every
//! record that comes from a file.

use super::{SeedRecord, may_follow};
use crate::growth::{AlphaAlgorithm, AlphaMode, SeedStage};

/// A record that no sequence of operations can have produced.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum InvariantError {
    #[error("a seed cannot become {to} from {from}")]
    IllegalTransition { from: SeedStage, to: SeedStage },
    #[error("stage {0} has no record")]
    NoSuchSeed(SeedStage),
    #[error("the alpha controller contradicts itself")]
    InconsistentAlpha,
    #[error("alpha is {alpha}, moving {mode}, in stage {stage}")]
    AlphaInStage {
        stage: SeedStage,
        alpha: f64,
        mode: AlphaMode,
    },
    #[error("a prune is pending, but alpha does not ramp down to 0 in BLENDING")]
    StrayPendingPrune,
    #[error("stage {stage} with {left} ticks of embargo left")]
    CooldownInStage { stage: SeedStage, left: u32 },
    #[error("a gate has parameters under operator {0}")]
    StrayGate(AlphaAlgorithm),
    #[error("the prune reason does not fit stage {0}")]
    PruneReasonInStage(SeedStage),
}

/// Checks all that can be seen from the record alone.
pub fn validate_invariants(seed: &SeedRecord) -> Result<(), InvariantError> {
    stage_is_reachable(seed)?;
    alpha_fits_stage(seed)?;
    prune_fits_stage(seed)?;
    let may_be_gated = seed.gate_params == 0 || seed.algorithm == AlphaAlgorithm::Gate;
    ensure(may_be_gated, InvariantError::StrayGate(seed.algorithm))
}

fn ensure(holds: bool, error: InvariantError) -> Result<(), InvariantError> {
    if holds { Ok(()) } else { Err(error) }
}

fn stage_is_reachable(seed: &SeedRecord) -> Result<(), InvariantError> {
    let (from, to) = (seed.previous_stage, seed.stage);
    ensure(to.is_occupied() || to.is_cooling(), InvariantError::NoSuchSeed(to))?;
    ensure(may_follow(from, to), InvariantError::IllegalTransition { from, to })
}

fn alpha_fits_stage(seed: &SeedRecord) -> Result<(), InvariantError> {
    ensure(seed.alpha.is_consistent(), InvariantError::InconsistentAlpha)?;
    let (stage, alpha, mode) = (seed.stage, seed.alpha.alpha(), seed.alpha.mode());
    let rests = mode == AlphaMode::Hold;
    let fits = match stage {
        SeedStage::Blending => true,
        SeedStage::Holding | SeedStage::Fossilized => rests && alpha == 1.0,
        _ => rests && alpha == 0.0,
    };
    ensure(fits, InvariantError::AlphaInStage { stage, alpha, mode })
}

fn prune_fits_stage(seed: &SeedRecord) -> Result<(), InvariantError> {
    let (stage, left) = (seed.stage, seed.cooldown_left);
    let fades = seed.alpha.mode() == AlphaMode::Down && seed.alpha.target() == 0.0;
    let is_pending = stage == SeedStage::Blending && fades;
    ensure(seed.is_fading() == is_pending, InvariantError::StrayPendingPrune)?;
    let may_cool = left == 0 || stage == SeedStage::Embargoed;
    ensure(may_cool, InvariantError::CooldownInStage { stage, left })?;
    let has_reason = seed.prune_reason.is_some();
    ensure(
        has_reason == stage.is_cooling(),
        InvariantError::PruneReasonInStage(stage),
    )
}

#[cfg(test)]
mod tests;
