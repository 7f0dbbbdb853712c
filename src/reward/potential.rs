//! Potential-based shaping over the stages of all seeds (spec 05 §3.5).
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
        SeedStage::Fossilized => (6.0, 6.0),
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::growth::SeedStage::*;

    const GAMMA: f64 = 0.995;

    #[track_caller]
    fn assert_close(actual: f64, expected: f64) {
        assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
    }

    fn phi(stage: SeedStage, n: u32) -> f64 {
        Potential::default().of_stage(stage, n)
    }

    fn shaping(before: f64, after: f64) -> f64 {
        Potential::default().shaping(before, after, GAMMA)
    }

    /// Spec 05 C1.
    #[test]
    fn potential_rises_with_stage_and_time_but_never_into_the_next_stage() {
        for (stage, n, expected) in [
            (Germinated, 1, 1.0),
            (Germinated, 5, 1.9),
            (Training, 5, 3.2),
            (Training, 10, 3.35),
            (Blending, 5, 4.7),
            (Blending, 10, 5.3),
            (Holding, 2, 5.8),
            (Holding, 10, 5.95),
            (Fossilized, 1, 6.0),
            (Fossilized, 50, 6.0),
            (Embargoed, 3, 0.0),
        ] {
            assert_close(phi(stage, n), expected);
        }
    }

    /// Spec 05 C1.
    #[test]
    fn shaping_pays_for_progress_and_takes_it_back_at_a_prune() {
        assert_close(shaping(0.0, phi(Germinated, 1)), 0.2985);
        assert_close(shaping(phi(Training, 5), phi(Training, 6)), 0.039975);
        assert_close(shaping(phi(Training, 3), phi(Blending, 1)), 0.26475);
        assert_close(shaping(phi(Holding, 2), phi(Fossilized, 1)), 0.051);
        assert_close(shaping(phi(Fossilized, 1), phi(Fossilized, 2)), -0.009);
        assert_close(shaping(phi(Training, 5), 0.0), -0.96);
    }

    fn discounted(potentials: &[f64]) -> f64 {
        let steps = potentials.windows(2).zip(0..);
        steps.map(|(pair, t)| GAMMA.powi(t) * shaping(pair[0], pair[1])).sum()
    }

    /// Spec 05 C2.
    #[test]
    fn a_whole_life_adds_nothing_once_the_episode_terminates() {
        let mut potentials = vec![0.0];
        for (stage, steps) in [
            (Germinated, 2),
            (Training, 11),
            (Blending, 6),
            (Holding, 5),
            (Fossilized, 4),
        ] {
            potentials.extend((1..=steps).map(|n| phi(stage, n)));
        }
        assert_eq!(potentials.len(), 29);
        assert_close(discounted(&potentials), 1.5642953919814673);

        potentials.push(0.0);
        assert_close(discounted(&potentials), 0.0);
    }

    /// Spec 05 C2.
    #[test]
    fn germinating_and_pruning_again_earns_nothing() {
        let potentials = [0.0, phi(Germinated, 1), phi(Germinated, 2), phi(Germinated, 3), 0.0];

        let paid: Vec<f64> = potentials.windows(2).map(|pair| shaping(pair[0], pair[1])).collect();

        for (actual, expected) in paid.iter().zip([0.2985, 0.08805, 0.0876, -0.48]) {
            assert_close(*actual, expected);
        }
        assert_close(discounted(&potentials), 0.0);
    }

    proptest! {
        /// Spec 05 C2: whatever the seeds of several slots do.
        #[test]
        fn shaping_telescopes(
            history in prop::collection::vec(prop::collection::vec((0usize..10, 1u32..20), 3), 1..80),
            terminates: bool,
        ) {
            let mut potentials = vec![0.0];
            potentials.extend(history.iter().map(|slots| -> f64 {
                slots.iter().map(|&(stage, n)| phi(SeedStage::ALL[stage], n)).sum()
            }));
            if terminates {
                potentials.push(0.0);
            }
            let last = potentials[potentials.len() - 1];
            let steps = potentials.len() as i32 - 1;

            prop_assert!((discounted(&potentials) - 0.3 * GAMMA.powi(steps) * last).abs() < 1e-9);
        }
    }
}
