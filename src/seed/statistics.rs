//! Formulas on plain sums: how healthy a seed's gradients are (spec 01 §12.2), and how much a host has grown (§16.1).

use crate::growth::SeedStage;

/// Norms below this count as no gradient at all when seed and host are compared.
const NEGLIGIBLE_NORM: f64 = 1e-8;
const RATIO_EPSILON: f64 = 1e-8;
const VANISHING_WEIGHT: f64 = 0.5;
const EXPLODING_WEIGHT: f64 = 0.8;

/// When the gradient norm of one tensor counts as vanishing or exploding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientThresholds {
    pub vanishing: f64,
    pub exploding: f64,
}

impl GradientThresholds {
    /// `exploding_factor` times the clip norm, or the factor itself when clipping is off.
    pub fn new(vanishing: f64, exploding_factor: f64, max_grad_norm: Option<f64>) -> Self {
        Self {
            vanishing,
            exploding: exploding_factor * max_grad_norm.unwrap_or(1.0),
        }
    }
}

/// Sums over the tensors of one parameter group (host, or seed with gate) that have a gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GradientSums {
    /// Sum of squared gradient elements.
    pub sum_squares: f64,
    /// Tensors whose norm vanishes.
    pub vanishing: u32,
    /// Tensors whose norm explodes or is not finite.
    pub exploding: u32,
    pub tensors: u32,
    pub elements: u64,
}

impl GradientSums {
    /// Folds `(norm, elements)` of each tensor.
    pub fn from_tensors(tensors: impl IntoIterator<Item = (f64, u64)>, thresholds: GradientThresholds) -> Self {
        tensors
            .into_iter()
            .fold(Self::default(), |sums, (norm, elements)| Self {
                sum_squares: sums.sum_squares + norm * norm,
                vanishing: sums.vanishing + u32::from(norm < thresholds.vanishing),
                exploding: sums.exploding + u32::from(norm > thresholds.exploding || !norm.is_finite()),
                tensors: sums.tensors + 1,
                elements: sums.elements + elements,
            })
    }

    /// Global L2 norm; infinite where it has no number. `None` without any gradient.
    pub fn norm(&self) -> Option<f64> {
        let norm = self.sum_squares.sqrt();
        (self.tensors > 0).then_some(if norm.is_finite() { norm } else { f64::INFINITY })
    }

    /// 1 is perfect, 0 is useless; `None` without any gradient.
    pub fn health(&self) -> Option<f64> {
        let norm = self.norm()?;
        let share = |count: u32| f64::from(count) / f64::from(self.tensors);
        let health = 1.0 - VANISHING_WEIGHT * share(self.vanishing) - EXPLODING_WEIGHT * share(self.exploding);
        Some(if norm.is_finite() { health.clamp(0.0, 1.0) } else { 0.0 })
    }

    /// Root-mean-square gradient of this group over that of `host`, at most `max`; 0 where either is negligible,
    /// `None` where this group has no finite gradient to compare.
    pub fn ratio_to(&self, host: &Self, max: f64) -> Option<f64> {
        let norm = self.norm().filter(|norm| norm.is_finite())?;
        let host_norm = host.norm().unwrap_or(0.0);
        if norm < NEGLIGIBLE_NORM || host_norm < NEGLIGIBLE_NORM || self.elements == 0 || host.elements == 0 {
            return Some(0.0);
        }
        let rms = |norm: f64, elements: u64| norm / (elements as f64).sqrt();
        let ratio = rms(norm, self.elements) / (rms(host_norm, host.elements) + RATIO_EPSILON);
        Some(ratio.clamp(0.0, max))
    }
}

/// Parameters and seeds of one env. Seed parameters count with their gate, frozen or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    pub host_params: u64,
    pub fossil_params: u64,
    pub live_params: u64,
    pub live_seeds: u32,
    pub fossilized_seeds: u32,
}

impl Growth {
    /// Counts the `(stage, parameters)` of every slot that holds a record; cooling slots weigh nothing.
    pub fn of(host_params: u64, seeds: impl IntoIterator<Item = (SeedStage, u64)>) -> Self {
        let mut growth = Self {
            host_params,
            ..Self::default()
        };
        for (stage, params) in seeds {
            if stage == SeedStage::Fossilized {
                growth.fossil_params += params;
                growth.fossilized_seeds += 1;
            } else if stage.is_live() {
                growth.live_params += params;
                growth.live_seeds += 1;
            }
        }
        growth
    }

    pub fn total_params(&self) -> u64 {
        self.host_params + self.fossil_params + self.live_params
    }

    /// What a seed limit compares with.
    pub fn total_seeds(&self) -> u32 {
        self.live_seeds + self.fossilized_seeds
    }

    /// Committed size over the host's: `(H + F) / H`.
    pub fn growth_ratio(&self) -> f64 {
        (self.host_params + self.fossil_params) as f64 / self.host_params as f64
    }

    /// Size with live seeds over the host's: `T / H`.
    pub fn parameter_ratio(&self) -> f64 {
        self.total_params() as f64 / self.host_params as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::*;

    #[track_caller]
    fn assert_close(actual: Option<f64>, expected: f64) {
        let actual = actual.expect("measured");
        assert!((actual - expected).abs() < 1e-6, "{actual} is not {expected}");
    }

    fn counted(tensors: u32, vanishing: u32, exploding: u32) -> GradientSums {
        GradientSums {
            sum_squares: 1.0,
            vanishing,
            exploding,
            tensors,
            elements: 16,
        }
    }

    fn with_norm(norm: f64, elements: u64) -> GradientSums {
        GradientSums {
            sum_squares: norm * norm,
            tensors: 1,
            elements,
            ..GradientSums::default()
        }
    }

    #[test]
    fn health_falls_with_vanishing_and_exploding_tensors() {
        assert_close(counted(4, 0, 0).health(), 1.0);
        assert_close(counted(4, 1, 0).health(), 0.875);
        assert_close(counted(4, 2, 1).health(), 0.55);
    }

    #[test]
    fn no_gradient_at_all_is_unmeasured() {
        let none = GradientSums::default();
        assert_eq!(none.norm(), None);
        assert_eq!(none.health(), None);
        assert_eq!(none.ratio_to(&with_norm(1.0, 10), 10.0), None);
    }

    #[test]
    fn tensor_norms_fold_into_one_global_norm() {
        let thresholds = GradientThresholds::new(1e-7, 10.0, Some(1.0));
        let sums = GradientSums::from_tensors([3.0, 4.0, 1e-8, 12.0].map(|norm| (norm, 10)), thresholds);
        assert_close(sums.norm(), 13.0);
        assert_eq!((sums.vanishing, sums.exploding), (1, 1));
        assert_close(sums.health(), 0.675);
    }

    /// Check C3 of spec 07.
    #[test]
    fn a_tensor_without_gradient_counts_as_vanishing() {
        let thresholds = GradientThresholds::new(1e-7, 10.0, Some(1.0));
        let norms = [0.0, 5e-8, 0.5, 3.0, 12.0].map(|norm| (norm, 10));
        let sums = GradientSums::from_tensors(norms, thresholds);
        assert_close(sums.norm(), 12.379_418_403_139_947);
        assert_eq!((sums.vanishing, sums.exploding), (2, 1));
        assert_close(sums.health(), 0.64);

        let diverged = norms.into_iter().chain([(f64::INFINITY, 10)]);
        assert_eq!(GradientSums::from_tensors(diverged, thresholds).health(), Some(0.0));
    }

    #[test]
    fn huge_norms_stay_finite_and_non_finite_ones_are_worthless() {
        let thresholds = GradientThresholds::new(1e-7, 10.0, None);
        let huge = GradientSums::from_tensors([(1e30, 1), (1e30, 1)], thresholds);
        assert!((huge.norm().expect("measured") / 1.4142e30 - 1.0).abs() < 1e-4);

        let diverged = GradientSums::from_tensors([(f64::NAN, 1), (1.0, 1)], thresholds);
        assert_eq!(diverged.norm(), Some(f64::INFINITY));
        assert_eq!(diverged.exploding, 1);
        assert_eq!(diverged.health(), Some(0.0));
    }

    #[test]
    fn the_ratio_compares_mean_squares_and_is_capped() {
        assert_close(with_norm(0.3, 688).ratio_to(&with_norm(2.0, 6418), 10.0), 0.458139);
        assert_close(with_norm(0.5, 1000).ratio_to(&with_norm(2.0, 100_000), 10.0), 2.499996);
        assert_close(with_norm(3.0, 10).ratio_to(&with_norm(0.1, 100_000), 10.0), 10.0);
        assert_close(with_norm(1e-9, 10).ratio_to(&with_norm(0.1, 10), 10.0), 0.0);
        assert_close(with_norm(1.0, 10).ratio_to(&GradientSums::default(), 10.0), 0.0);
    }

    /// Check C4 of spec 07.
    #[test]
    fn the_ratio_of_a_small_seed_to_its_host() {
        let ratio = with_norm(0.2, 4200).ratio_to(&with_norm(4.0, 6000), 10.0);
        assert_close(ratio, 0.059_761_418_893_970_7);
    }

    #[test]
    fn growth_counts_committed_and_live_parameters_apart() {
        let growth = Growth::of(
            6418,
            [
                (SeedStage::Fossilized, 688),
                (SeedStage::Blending, 273),
                (SeedStage::Embargoed, 5000),
            ],
        );
        assert!((growth.growth_ratio() - 1.107199).abs() < 1e-6);
        assert!((growth.parameter_ratio() - 1.149735).abs() < 1e-6);
        assert_eq!(
            (growth.live_seeds, growth.fossilized_seeds, growth.total_seeds()),
            (1, 1, 2)
        );
    }
}
