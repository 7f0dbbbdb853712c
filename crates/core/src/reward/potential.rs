//! Potential-based shaping over the stages of all seeds.
//!
//! For any trajectory s_0..s_N the discounted shaping telescopes:
//! `Σ_{t<N} γ^t (γ Φ_{t+1} − Φ_t) = Σ_{t=1..N} γ^t Φ_t − Σ_{t=0..N−1} γ^t Φ_t = γ^N Φ_N − Φ_0`.
//! `Φ_0 = 0`: an episode starts without seeds. If it terminates, `Φ_N = 0`, so shaping adds exactly nothing to any episode.
//! If it is truncated, the left-over `γ^N w Φ_N` is cancelled by the bootstrap, because the shaped value function is
//! `V'(s) = V(s) − w Φ(s)`. Hence the order of policies is that of the unshaped reward (Ng, Harada, Russell 1999). This
//! breaks if γ differs from the learner's, if a factor that depends on the action multiplies the term, or if rewards are
//! clipped.

use super::inputs::{EpisodeStatus, RewardInputs, SeedView};
use crate::growth::SeedStage;

/// Gained per step in a stage.
const PROGRESS: f64 = 0.3;
/// Most of the gap to the next stage that progress can close.
const GAP_FRACTION: f64 = 0.9;

/// Potential on entering a stage, and on entering the one that follows.
const fn stage_potential(stage: SeedStage) -> (f64, f64) {
    match stage {
        SeedStage::Germinated => (1.0, 2.0),
        SeedStage::Training => (2.0, 3.5),
        SeedStage::Blending => (3.5, 5.5),
        SeedStage::Holding => (5.5, 6.0),
        SeedStage::Committed => (6.0, 6.0),
        SeedStage::Unknown | SeedStage::Dormant | SeedStage::Pruned | SeedStage::Embargoed | SeedStage::Resetting => {
            (0.0, 0.0)
        }
    }
}

/// Potential of a seed that has been in `stage` for `steps_in_stage` decisions, counted from 1.
fn of_stage(stage: SeedStage, steps_in_stage: u32) -> f64 {
    let (base, next) = stage_potential(stage);
    let progress = PROGRESS * f64::from(steps_in_stage.saturating_sub(1));
    base + progress.min(GAP_FRACTION * (next - base))
}

/// Potential of all seeds together; withering ones have none.
fn of_seeds<'a>(seeds: impl Iterator<Item = &'a SeedView>) -> f64 {
    seeds
        .filter(|seed| !seed.is_withering)
        .map(|seed| of_stage(seed.stage, seed.steps_in_stage))
        .sum()
}

/// The shaping of a step, to be weighed: from before the action to what the next decision will see, which is 0 once the
/// episode has terminated.
pub(super) fn shaping(inputs: &RewardInputs) -> f64 {
    let before = of_seeds(inputs.before().map(|(_, seed)| seed));
    let after = match inputs.status {
        EpisodeStatus::Terminated => 0.0,
        EpisodeStatus::Running | EpisodeStatus::Truncated => of_seeds(inputs.after()),
    };
    inputs.gamma * after - before
}

#[cfg(test)]
mod tests;
