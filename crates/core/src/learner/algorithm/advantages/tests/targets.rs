use super::super::*;
use crate::telemetry::statistics::mean_and_std;

#[track_caller]
fn assert_standardised(values: &[f64], expected: &[f64]) {
    let (mean, deviation) = mean_and_std(values).unwrap();
    for (&value, expected) in values.iter().zip(expected) {
        assert!((standardised(value, mean, deviation) - expected).abs() < 1e-6);
    }
}

#[test]
fn advantages_are_centred_and_divided() {
    let expected = [0.577_350_3, -1.402_136_4, -0.412_393_1, 1.237_179_2];
    assert_standardised(&[2.0, -1.0, 0.5, 3.0], &expected);
}

#[test]
fn a_deviation_below_the_floor_is_raised_to_it() {
    assert_standardised(&[1.0, 1.02, 0.98, 1.0], &[0.0, 0.2, -0.2, 0.0]);
}
