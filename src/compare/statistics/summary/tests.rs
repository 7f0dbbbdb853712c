use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::compare::statistics::fixtures::{assert_close, reference};

fn iqm(values: &[f64]) -> f64 {
    Statistic::Iqm.of(values)
}

fn worst_tenth(values: &[f64]) -> f64 {
    Statistic::WorstTenth.of(values)
}

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
        assert_close(median(values), case.median);
        assert_close(iqm(values), case.iqm);
        assert_close(worst_tenth(values), case.worst_tenth);
        let mut ascending = values.clone();
        ascending.sort_by(f64::total_cmp);
        for (q, expected) in case.percentiles {
            assert_close(percentile(&ascending, q), expected);
        }
    }
}

#[test]
fn the_interquartile_mean_leaves_out_a_quarter_at_each_end() {
    assert_close(iqm(&[71.2, 72.5, 70.8, 73.1, 71.9]), 71.866_666_666_666_67);
    assert_close(iqm(&[69.9, 70.4, 71.0, 70.1, 69.5]), 70.133_333_333_333_33);
    assert_close(iqm(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]), 5.5);
    assert_close(iqm(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0]), 3.5);
}

#[test]
fn percentiles_lie_between_order_statistics() {
    let values = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert_close(percentile(&values, 0.025), 1.1);
    assert_close(percentile(&values, 0.975), 4.9);
    assert_close(percentile(&values, 1.0), 5.0);
    assert_close(percentile(&[7.0], 0.3), 7.0);
}

/// Of 11 values the two lowest: a tenth of them is more than one.
#[test]
fn the_worst_tenth_is_rounded_up() {
    let values: Vec<f64> = (1..=11).rev().map(f64::from).collect();
    assert_close(worst_tenth(&values), 1.5);
    assert_close(worst_tenth(&values[1..]), 1.0);
}

#[test]
fn nothing_looks_like_a_number_without_values_or_with_values_that_are_none() {
    for statistic in [mean, median, iqm, worst_tenth] {
        assert!(statistic(&[]).is_nan());
        assert!(!statistic(&[1.0, 2.0, f64::NAN, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).is_finite());
        assert!(!statistic(&[1.0, 2.0, f64::INFINITY, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).is_finite());
    }
    assert!(percentile(&[], 0.5).is_nan());
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
        for statistic in [Statistic::Mean, Statistic::Median, Statistic::Iqm, Statistic::WorstTenth] {
            let value = statistic.of(&values);
            prop_assert!((statistic.of(&shifted) - value - shift).abs() < 1e-9);
            prop_assert!(lowest - 1e-9 <= value && value <= highest + 1e-9);
        }
        prop_assert!(worst_tenth(&values) <= mean(&values) + 1e-9);
    }
}
