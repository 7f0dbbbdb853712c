use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::compare::statistics::fixtures::{assert_close, reference};

const ALL: [Statistic; 4] = [
    Statistic::Mean,
    Statistic::Median,
    Statistic::Iqm,
    Statistic::WorstTenth,
];

#[derive(Deserialize)]
struct Case {
    values: Vec<f64>,
    mean: f64,
    median: f64,
    iqm: f64,
    worst_tenth: f64,
    percentiles: Vec<(f64, f64)>,
}

#[test]
fn summaries_are_numpy_s_and_scipy_s() {
    for case in reference::<Vec<Case>>("summaries") {
        let values = &case.values;
        assert_close(mean(values), case.mean);
        assert_close(Statistic::Median.of(values), case.median);
        assert_close(Statistic::Iqm.of(values), case.iqm);
        assert_close(Statistic::WorstTenth.of(values), case.worst_tenth);
        let mut ascending = values.clone();
        ascending.sort_by(f64::total_cmp);
        for (q, expected) in case.percentiles {
            assert_close(percentile(&ascending, q), expected);
        }
    }
}

#[test]
fn nothing_looks_like_a_number_without_values_or_with_values_that_are_none() {
    for statistic in ALL {
        assert!(statistic.of(&[]).is_nan());
        for odd in [f64::NAN, f64::INFINITY] {
            assert!(!statistic.of(&[1.0, 2.0, odd, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).is_finite());
        }
    }
    assert!(mean(&[]).is_nan() && percentile(&[], 0.5).is_nan());
}

proptest! {
    #[test]
    fn statistics_move_with_their_values_and_stay_among_them(
        values in prop::collection::vec(-100.0..100.0f64, 1..40),
        shift in -50.0..50.0f64,
    ) {
        let shifted: Vec<f64> = values.iter().map(|value| value + shift).collect();
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for statistic in ALL {
            let value = statistic.of(&values);
            prop_assert!((statistic.of(&shifted) - value - shift).abs() < 1e-9);
            prop_assert!(lowest - 1e-9 <= value && value <= highest + 1e-9);
        }
        prop_assert!(Statistic::WorstTenth.of(&values) <= mean(&values) + 1e-9);
    }
}
