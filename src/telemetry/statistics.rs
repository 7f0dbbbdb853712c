//! Small formulas that events and views share (spec 07 §6, §16; 05 §10.3).

/// Rounds a rolling value looks back over.
pub const ROLLING_ROUNDS: usize = 10;

/// Mean of the last ten values; absent while there is only one (spec 07 §6.8).
pub fn rolling_mean(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let window = &values[values.len().saturating_sub(ROLLING_ROUNDS)..];
    Some(window.iter().sum::<f64>() / window.len() as f64)
}

/// Mean and population standard deviation; absent over nothing.
pub fn mean_and_std(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    Some((mean, variance.sqrt()))
}

/// Middle value, or the mean of the two middle ones; absent over nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len().is_multiple_of(2) {
        (sorted[sorted.len() / 2 - 1] + upper) / 2.0
    } else {
        upper
    })
}

/// Standard error of a contribution, in points: of `samples`, `lost` were right only with the seed and `won` only without
/// it. Paired, hence tighter than that of two accuracies (spec 05 §10.3).
pub fn paired_standard_error(lost: u64, won: u64, samples: u64) -> f64 {
    let (lost, won, samples) = (lost as f64, won as f64, samples as f64);
    let difference = lost - won;
    100.0 / samples * (lost + won - difference * difference / samples).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rolling_values_are_absent_in_round_0_and_span_ten_rounds() {
        assert_eq!(rolling_mean(&[50.0]), None);
        assert_eq!(rolling_mean(&[50.0, 60.0]), Some(55.0));

        let mut values = vec![0.0; 5];
        values.extend([40.0; 10]);
        assert_eq!(rolling_mean(&values), Some(40.0));
    }

    #[test]
    fn spread_is_that_of_the_population() {
        assert_eq!(mean_and_std(&[2.0, 4.0]), Some((3.0, 1.0)));
        assert_eq!(mean_and_std(&[]), None);
    }

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    /// 100 samples, 9 lost and 1 won without the seed: c = 8 points, se = sqrt(10 - 64/100) = 3.0594.
    #[test]
    fn a_contribution_has_a_paired_standard_error() {
        assert!((paired_standard_error(9, 1, 100) - 3.059_411_708_155_671).abs() < 1e-12);
        assert_eq!(paired_standard_error(0, 0, 100), 0.0);
    }
}
