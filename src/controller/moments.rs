//! Mean and variance of a stream of batches, the one rule of all normalisers (spec 04 §5.1).

use serde::{Deserialize, Serialize};

/// Before this many elements, statistics are not to be used.
pub const READY_COUNT: u64 = 32;

/// Running mean and population variance of one quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    pub mean: f64,
    pub var: f64,
    pub count: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            mean: 0.0,
            var: 1.0,
            count: 0,
        }
    }
}

impl Moments {
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
        let count = self.count + size as u64;
        let past = momentum.min(self.count as f64 / count as f64);
        let shift = mean - self.mean;
        self.var = past * self.var + (1.0 - past) * var + past * (1.0 - past) * shift * shift;
        self.mean = past * self.mean + (1.0 - past) * mean;
        self.count = count;
        true
    }

    /// Enough has been seen.
    pub fn is_ready(&self, min_count: u64) -> bool {
        self.count >= min_count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Spec 04 Check 6.
    #[test]
    fn momentum_one_is_exact_over_all_batches() {
        let mut moments = Moments::default();
        for batch in [&[1.0, 2.0, 3.0, 4.0][..], &[5.0, 6.0], &[100.0]] {
            assert!(moments.merge(batch.iter().copied(), 1.0));
        }
        assert!((moments.mean - 17.285_714_3).abs() < 1e-6);
        assert!((moments.var - 1_142.775_510_2).abs() < 1e-6);
        assert_eq!(moments.count, 7);
    }

    /// Spec 04 Check 6.
    #[test]
    fn a_smaller_momentum_forgets() {
        let mut moments = Moments::default();
        let mut seen = Vec::new();
        for batch in [&[1.0, 2.0, 3.0, 4.0][..], &[5.0, 6.0], &[100.0]] {
            moments.merge(batch.iter().copied(), 0.5);
            seen.push((moments.mean, moments.var));
        }
        assert_eq!(seen, [(2.5, 1.25), (4.0, 3.0), (52.0, 2305.5)]);
    }

    #[test]
    fn batches_that_are_not_finite_or_empty_change_nothing() {
        let mut moments = Moments::default();
        moments.merge([1.0, 3.0].into_iter(), 1.0);
        let before = moments;
        assert!(!moments.merge([f64::NAN].into_iter(), 1.0));
        assert!(moments.merge(std::iter::empty(), 1.0));
        assert_eq!(moments, before);
    }

    proptest! {
        /// Spec 04 §5.1: with momentum 1 the order and size of batches leave no trace.
        #[test]
        fn merged_batches_equal_two_passes_over_all_values(
            batches in prop::collection::vec(prop::collection::vec(-100.0f64..100.0, 0..20), 1..8),
        ) {
            let mut moments = Moments::default();
            for batch in &batches {
                prop_assert!(moments.merge(batch.iter().copied(), 1.0));
            }

            let all = batches.concat();
            prop_assume!(!all.is_empty());
            let n = all.len() as f64;
            let mean = all.iter().sum::<f64>() / n;
            let var = all.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
            prop_assert!((moments.mean - mean).abs() < 1e-9, "{} is not {mean}", moments.mean);
            prop_assert!((moments.var - var).abs() < 1e-7 * (1.0 + var), "{} is not {var}", moments.var);
            prop_assert_eq!(moments.count, all.len() as u64);
        }
    }
}
