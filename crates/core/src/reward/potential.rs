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

/// Weight and shape of the potential.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Potential {
    /// Factor on all of it.
    pub weight: f64,
    /// Gained per step in a stage.
    pub progress_bonus: f64,
    /// Most of the gap to the next stage that progress can close.
    pub gap_fraction: f64,
}

impl Default for Potential {
    fn default() -> Self {
        Self {
            weight: 0.3,
            progress_bonus: 0.3,
            gap_fraction: 0.9,
        }
    }
}

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

impl Potential {
    /// Of a seed that has been in `stage` for `epochs_in_stage` decisions, counted from 1.
    pub fn of_stage(&self, stage: SeedStage, epochs_in_stage: u32) -> f64 {
        let (base, next) = stage_potential(stage);
        let progress = self.progress_bonus * f64::from(epochs_in_stage.saturating_sub(1));
        base + progress.min(self.gap_fraction * (next - base))
    }

    /// Of all seeds together; withering ones have none.
    pub fn of_seeds<'a>(&self, seeds: impl Iterator<Item = &'a SeedView>) -> f64 {
        seeds
            .filter(|seed| !seed.is_withering)
            .map(|seed| self.of_stage(seed.stage, seed.epochs_in_stage))
            .sum()
    }

    /// Before the action, and as the next decision will see it; 0 once the episode has terminated.
    pub fn of_step(&self, inputs: &RewardInputs) -> (f64, f64) {
        let before = self.of_seeds(inputs.before().map(|(_, seed)| seed));
        let after = match inputs.status {
            EpisodeStatus::Terminated => 0.0,
            EpisodeStatus::Running | EpisodeStatus::Truncated => self.of_seeds(inputs.after()),
        };
        (before, after)
    }

    /// The shaping term of a step.
    pub fn shaping(&self, before: f64, after: f64, gamma: f64) -> f64 {
        self.weight * (gamma * after - before)
    }
}

#[cfg(test)]
mod tests;
