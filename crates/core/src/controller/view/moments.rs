//! Mean and variance of a stream of batches, the one rule of all normalisers.

use serde::{Deserialize, Serialize};

/// Elements before which no statistics are used: the first few say more of chance than of what is to come.
pub const MIN_COUNT: u64 = 32;

/// Running mean and population variance of one quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningMoments {
    /// 0 before the first batch.
    pub mean: f64,
    /// Population variance, 1 before the first batch.
    pub var: f64,
    /// Elements merged so far.
    pub count: u64,
}

impl Default for RunningMoments {
    fn default() -> Self {
        Self {
            mean: 0.0,
            var: 1.0,
            count: 0,
        }
    }
}

impl RunningMoments {
    /// Merges the values of a batch. `momentum` in (0, 1] bounds the weight of the past: 1 is exact over all history,
    /// less becomes an exponential average once the history is long enough.
    ///
    /// Returns false, and changes nothing, if the batch's mean or variance is not finite. An empty batch is merged
    /// without effect.
    pub fn merge(&mut self, values: impl Iterator<Item = f64> + Clone, momentum: f64) -> bool {
        let size = values.clone().count();
        if size == 0 {
            return true;
        }
        let mean = values.clone().sum::<f64>() / size as f64;
        let var = values.map(|value| (value - mean).powi(2)).sum::<f64>() / size as f64;
        if !(mean.is_finite() && var.is_finite()) {
            return false;
        }
        let count = self.count.saturating_add(size as u64);
        let past = momentum.min(self.count as f64 / count as f64);
        let shift = mean - self.mean;
        self.var = past * self.var + (1.0 - past) * var + past * (1.0 - past) * shift * shift;
        self.mean = past * self.mean + (1.0 - past) * mean;
        self.count = count;
        true
    }

    /// Whether these can be the moments of anything: finite, and no negative variance.
    pub fn is_finite(&self) -> bool {
        self.mean.is_finite() && self.var.is_finite() && self.var >= 0.0
    }

    /// Enough has been seen.
    pub fn is_ready(&self, min_count: u64) -> bool {
        self.count >= min_count
    }
}

#[cfg(test)]
mod tests;
