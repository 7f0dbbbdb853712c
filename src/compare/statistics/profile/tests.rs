use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::compare::statistics::fixtures::{Resampled, assert_close, reference};

#[derive(Deserialize)]
struct Case {
    tasks: Vec<Vec<f64>>,
    taus: Vec<f64>,
    fractions: Vec<f64>,
    #[serde(flatten)]
    resampled: Resampled,
}

#[test]
fn profiles_and_bands_are_rliable_s() {
    let case: Case = reference("profile");

    let profile = performance_profile(&Sample::of_numbers(&case.tasks), &case.taus, case.resampled.bootstrap());

    assert_eq!(profile.len(), case.taus.len());
    for (point, (tau, fraction)) in profile.iter().zip(case.taus.iter().zip(&case.fractions)) {
        assert_eq!(point.tau, *tau);
        assert_close(point.fraction, *fraction);
    }
    case.resampled
        .assert_intervals(profile.iter().map(|point| point.interval));
}

#[test]
fn a_score_is_not_above_itself() {
    let profile = performance_profile(
        &Sample::of_numbers(&[vec![1.0, 2.0]]),
        &[2.0, 1.0],
        Bootstrap::seeded(1),
    );
    let fractions: Vec<f64> = profile.iter().map(|point| point.fraction).collect();
    assert_eq!(fractions, [0.0, 0.5]);
    assert!(profile.iter().all(|point| point.interval.is_none()));
}

#[test]
fn what_was_not_measured_has_no_profile() {
    let profile = performance_profile(&Sample::of_numbers(&[vec![f64::NAN; 6]]), &[2.0], Bootstrap::seeded(1));
    assert!(profile[0].fraction.is_nan() && profile[0].interval.is_none());
}

proptest! {
    #[test]
    fn profiles_fall_from_one_to_zero(scores in prop::collection::vec(0.0..1.0f64, 5..12), seed: u64) {
        let taus: Vec<f64> = (-1..=10).map(|tenth| f64::from(tenth) / 10.0).collect();
        let few = Bootstrap { resamples: 40, ..Bootstrap::seeded(seed) };
        let profile = performance_profile(&Sample::of_numbers(&[scores]), &taus, few);
        prop_assert_eq!(profile[0].fraction, 1.0);
        prop_assert_eq!(profile[11].fraction, 0.0);
        for pair in profile.windows(2) {
            let [before, after] = [pair[0], pair[1]];
            let (higher, lower) = (before.interval.expect("a band"), after.interval.expect("a band"));
            prop_assert!(before.fraction >= after.fraction);
            prop_assert!(higher.low >= lower.low && higher.high >= lower.high);
        }
    }
}
