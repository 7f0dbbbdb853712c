//! Means, trimmed means and their bootstrap intervals. Equal inputs give equal numbers, bit for bit.

use serde::Serialize;

use crate::random::{Domain, Draw, RunRng};

/// Resamples behind an interval.
const RESAMPLES: usize = 10_000;
/// Probability that an interval leaves out at each end: 95 % remain.
const TAIL: f64 = 0.025;
/// With fewer values an interval would pretend to know more than it does.
const FEWEST_VALUES: usize = 5;

/// Where a statistic lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// NaN of no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Interquartile mean: without the `floor(n/4)` lowest and as many highest values. NaN of no values.
pub fn iqm(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let trimmed = sorted.len() / 4;
    mean(&sorted[trimmed..sorted.len() - trimmed])
}

/// The quantile `q` in [0, 1] of ascending values, linear between neighbours: position `(n - 1)·q`. NaN of no values.
pub fn percentile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = last as f64 * q;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

/// Percentile bootstrap of a statistic of all values. Values are drawn again within their own stratum only, so that
/// differences between strata do not widen the interval. Equally shaped strata are drawn alike under one seed: paired
/// samples are resampled jointly. `None` with fewer than 5 values.
pub fn bootstrap_interval(strata: &[Vec<f64>], statistic: impl Fn(&[f64]) -> f64, seed: u64) -> Option<Interval> {
    let count: usize = strata.iter().map(Vec::len).sum();
    if count < FEWEST_VALUES {
        return None;
    }
    let mut rng = RunRng::new(seed, Domain::StatisticsResampling, &[0]);
    let mut drawn = Vec::with_capacity(count);
    let mut statistics: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            drawn.clear();
            for stratum in strata {
                drawn.extend(
                    stratum
                        .iter()
                        .map(|_| stratum[rng.below(stratum.len() as u64) as usize]),
                );
            }
            statistic(&drawn)
        })
        .collect();
    statistics.sort_unstable_by(f64::total_cmp);
    Some(Interval {
        low: percentile(&statistics, TAIL),
        high: percentile(&statistics, 1.0 - TAIL),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_close(actual: f64, expected: f64) {
        assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
    }

    #[test]
    fn the_interquartile_mean_leaves_out_a_quarter_at_each_end() {
        assert_close(iqm(&[71.2, 72.5, 70.8, 73.1, 71.9]), 71.866_666_666_666_67);
        assert_close(iqm(&[69.9, 70.4, 71.0, 70.1, 69.5]), 70.133_333_333_333_33);
        assert_close(iqm(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]), 5.5);
        assert_close(iqm(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0]), 3.5);
        assert!(iqm(&[]).is_nan());
    }

    #[test]
    fn percentiles_lie_between_order_statistics() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_close(percentile(&values, 0.025), 1.1);
        assert_close(percentile(&values, 0.975), 4.9);
        assert_close(percentile(&values, 1.0), 5.0);
        assert_close(percentile(&[7.0], 0.3), 7.0);
        assert!(percentile(&[], 0.5).is_nan());
    }

    #[test]
    fn values_that_do_not_vary_leave_no_doubt() {
        let interval = bootstrap_interval(&[vec![61.3; 12]], iqm, 1);
        let value = iqm(&[61.3; 12]);

        assert_eq!(
            interval,
            Some(Interval {
                low: value,
                high: value
            })
        );
    }

    /// The mean of 40 fair coins lies between the binomial quantiles 14/40 and 26/40.
    #[test]
    fn the_interval_of_a_proportion_is_the_binomial_s() {
        let coins = [vec![0.0; 20], vec![1.0; 20]].concat();

        assert_eq!(
            bootstrap_interval(&[coins], mean, 42),
            Some(Interval { low: 0.35, high: 0.65 })
        );
    }

    #[test]
    fn differences_between_strata_do_not_widen_the_interval() {
        let strata = [vec![10.0; 5], vec![20.0; 5]];

        let stratified = bootstrap_interval(&strata, mean, 3).expect("ten values");
        let pooled = bootstrap_interval(&[strata.concat()], mean, 3).expect("ten values");

        assert_eq!((stratified.low, stratified.high), (15.0, 15.0));
        assert!(pooled.high - pooled.low > 4.0, "{pooled:?}");
    }

    #[test]
    fn equally_shaped_samples_are_resampled_jointly() {
        let values = vec![vec![3.0, 1.0, 4.0], vec![1.0, 5.0, 9.0]];
        let shifted: Vec<Vec<f64>> = values
            .iter()
            .map(|stratum| stratum.iter().map(|v| v + 8.0).collect())
            .collect();

        let (a, b) = (
            bootstrap_interval(&values, mean, 7),
            bootstrap_interval(&shifted, mean, 7),
        );

        let (a, b) = (a.expect("six values"), b.expect("six values"));
        assert_close(b.low - a.low, 8.0);
        assert_close(b.high - a.high, 8.0);
    }

    #[test]
    fn four_values_are_too_few_for_an_interval() {
        assert_eq!(bootstrap_interval(&[vec![1.0, 2.0], vec![3.0, 4.0]], mean, 1), None);
    }
}
