//! What must hold of every record at all times (spec 01 §7): checked after each change in debug builds, and on every
//! record that comes from a file.

use super::{SeedRecord, may_follow};
use crate::growth::{AlphaAlgorithm, AlphaMode, SeedStage};

/// A record that no sequence of operations can have produced.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
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
    if seed.is_withering() != (stage == SeedStage::Blending && fades) {
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
mod tests {
    use super::*;
    use crate::growth::*;
    use crate::growth::{Initiator, PruneReason};
    use crate::scenario::LifecycleConfig;
    use crate::seed::PruneOrder;
    use crate::seed::fixtures::held;

    /// What is wrong with a held seed after `change`.
    fn error_after(change: impl FnOnce(&mut SeedRecord)) -> InvariantError {
        let mut seed = held(LifecycleConfig::default()).seed().clone();
        assert_eq!(validate_invariants(&seed), Ok(()));
        change(&mut seed);
        validate_invariants(&seed).expect_err("the record is impossible")
    }

    #[test]
    fn impossible_records_are_told_apart() {
        let (from, to) = (SeedStage::Training, SeedStage::Holding);
        assert_eq!(
            error_after(|seed| seed.previous_stage = from),
            InvariantError::IllegalTransition { from, to }
        );
        assert_eq!(
            error_after(|seed| seed.stage = SeedStage::Dormant),
            InvariantError::NoSuchSeed(SeedStage::Dormant)
        );
        assert_eq!(
            error_after(|seed| seed.alpha.reset()),
            InvariantError::AlphaInStage {
                stage: to,
                alpha: 0.0,
                mode: AlphaMode::Hold
            }
        );
        assert_eq!(
            error_after(|seed| {
                seed.pending_prune = Some(PruneOrder {
                    reason: PruneReason::Policy,
                    initiator: Initiator::Policy,
                });
            }),
            InvariantError::StrayPendingPrune
        );
        assert_eq!(
            error_after(|seed| seed.cooldown_left = 2),
            InvariantError::CooldownInStage { stage: to, left: 2 }
        );
        assert_eq!(
            error_after(|seed| seed.gate_params = 81),
            InvariantError::StrayGate(AlphaAlgorithm::Add)
        );
        assert_eq!(
            error_after(|seed| seed.prune_reason = Some(PruneReason::Policy)),
            InvariantError::PruneReasonInStage(to)
        );
    }

    #[test]
    fn an_alpha_outside_its_range_is_found_after_reading() {
        let seed = held(LifecycleConfig::default()).seed().clone();
        let mut document = serde_json::to_value(&seed).expect("records can be written");
        document["alpha"]["alpha"] = 1.5.into();
        let read: SeedRecord = serde_json::from_value(document).expect("the form is right");
        assert_eq!(validate_invariants(&read), Err(InvariantError::InconsistentAlpha));
    }
}
