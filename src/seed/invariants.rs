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
    if seed.gate_params > 0 && seed.algorithm != AlphaAlgorithm::Gate {
        return Err(InvariantError::StrayGate(seed.algorithm));
    }
    Ok(())
}

fn stage_is_reachable(seed: &SeedRecord) -> Result<(), InvariantError> {
    let (from, to) = (seed.previous_stage, seed.stage);
    if !to.is_occupied() && !to.is_cooling() {
        return Err(InvariantError::NoSuchSeed(to));
    }
    if !may_follow(from, to) {
        return Err(InvariantError::IllegalTransition { from, to });
    }
    Ok(())
}

fn alpha_fits_stage(seed: &SeedRecord) -> Result<(), InvariantError> {
    if !seed.alpha.is_consistent() {
        return Err(InvariantError::InconsistentAlpha);
    }
    let (alpha, mode) = (seed.alpha.alpha(), seed.alpha.mode());
    let rests = mode == AlphaMode::Hold;
    let fits = match seed.stage {
        SeedStage::Blending => true,
        SeedStage::Holding | SeedStage::Fossilized => rests && alpha == 1.0,
        _ => rests && alpha == 0.0,
    };
    if fits {
        Ok(())
    } else {
        let stage = seed.stage;
        Err(InvariantError::AlphaInStage { stage, alpha, mode })
    }
}

fn prune_fits_stage(seed: &SeedRecord) -> Result<(), InvariantError> {
    let stage = seed.stage;
    let fades = seed.alpha.mode() == AlphaMode::Down && seed.alpha.target() == 0.0;
    if seed.is_fading() != (stage == SeedStage::Blending && fades) {
        return Err(InvariantError::StrayPendingPrune);
    }
    let left = seed.cooldown_left;
    if left > 0 && stage != SeedStage::Embargoed {
        return Err(InvariantError::CooldownInStage { stage, left });
    }
    if seed.prune_reason.is_some() != stage.is_cooling() {
        return Err(InvariantError::PruneReasonInStage(stage));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
