//! Invariants of every record: checked after each change in debug builds.

use super::SeedRecord;
use crate::growth::{AlphaAlgorithm, AlphaMode, SeedStage};

/// The first law that a record breaks, which no sequence of operations can have produced then. Sees only the record.
pub fn broken_law(seed: &SeedRecord) -> Option<&'static str> {
    let (stage, alpha) = (seed.stage, &seed.alpha);
    let rests_at = |level: f64| alpha.mode() == AlphaMode::Hold && alpha.alpha() == level;
    let alpha_fits_stage = match stage {
        SeedStage::Blending => true,
        SeedStage::Holding | SeedStage::Committed => rests_at(1.0),
        _ => rests_at(0.0),
    };
    let fades = stage == SeedStage::Blending && alpha.mode() == AlphaMode::Down && alpha.target() == 0.0;
    let is_embargoed = stage == SeedStage::Embargoed;
    let is_gated = seed.algorithm == AlphaAlgorithm::Gate;
    let laws = [
        (
            "the stage is occupied or cooling",
            stage.is_occupied() || stage.is_cooling(),
        ),
        ("alpha and its ramp are in range", alpha.is_consistent()),
        ("alpha rests at the value of its stage", alpha_fits_stage),
        (
            "a prune is pending exactly if alpha moves down to 0 in BLENDING",
            seed.is_fading() == fades,
        ),
        (
            "embargo is left in EMBARGOED only",
            seed.cooldown_left == 0 || is_embargoed,
        ),
        (
            "a prune reason is set exactly in cooling stages",
            seed.prune_reason.is_some() == stage.is_cooling(),
        ),
        (
            "gate parameters come with the operator GATE only",
            seed.gate_params == 0 || is_gated,
        ),
    ];
    laws.into_iter().find(|(_, holds)| !holds).map(|(law, _)| law)
}

#[cfg(test)]
mod tests;
