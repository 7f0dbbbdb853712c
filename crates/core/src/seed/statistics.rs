//! Formulas on plain sums: how healthy a seed's gradients are, and how much a host has grown.

use crate::growth::SeedStage;

/// Batches from one measurement of gradient statistics to the next, from the first of a step on: the sums cost a pass over all
/// gradients, and the last of a step are enough.
pub const STATISTICS_STRIDE: usize = 10;

/// Norms below this count as no gradient at all when seed and host are compared.
const NEGLIGIBLE_NORM: f64 = 1e-8;
const RATIO_EPSILON: f64 = 1e-8;
const VANISHING_WEIGHT: f64 = 0.5;
const EXPLODING_WEIGHT: f64 = 0.8;

/// Sums over the tensors of one parameter group (host, or seed with gate) that have a gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GradientSums {
    /// Sum of squared gradient elements.
    pub sum_squares: f64,
    /// Tensors whose norm vanishes.
    pub vanishing: u32,
    /// Tensors whose norm explodes or is not finite.
    pub exploding: u32,
    /// Tensors with a gradient.
    pub tensors: u32,
    /// Elements of those tensors.
    pub elements: u64,
}

impl GradientSums {
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
    /// Parameters of the host.
    pub host_params: u64,
    /// Parameters of committed seeds.
    pub committed_params: u64,
    /// Parameters of seeds that are neither committed nor pruned.
    pub live_params: u64,
}

impl Growth {
    /// Counts the `(stage, parameters)` of every slot that holds a record; cooling slots weigh nothing.
    pub fn of(host_params: u64, seeds: impl IntoIterator<Item = (SeedStage, u64)>) -> Self {
        let mut growth = Self {
            host_params,
            ..Self::default()
        };
        for (stage, params) in seeds {
            if stage == SeedStage::Committed {
                growth.committed_params += params;
            } else if stage.is_live() {
                growth.live_params += params;
            }
        }
        growth
    }

    /// Parameters of host and seeds.
    pub fn total_params(&self) -> u64 {
        self.host_params + self.committed_params + self.live_params
    }

    /// Committed size over the host's: `(H + F) / H`.
    pub fn growth_ratio(&self) -> f64 {
        (self.host_params + self.committed_params) as f64 / self.host_params as f64
    }

    /// Size with live seeds over the host's: `T / H`.
    pub fn parameter_ratio(&self) -> f64 {
        self.total_params() as f64 / self.host_params as f64
    }
}

#[cfg(test)]
mod tests;
