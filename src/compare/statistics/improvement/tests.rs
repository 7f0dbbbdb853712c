use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::compare::statistics::fixtures::{Resampled, assert_close, reference};

#[derive(Deserialize)]
struct Case {
    first: Vec<Vec<f64>>,
    second: Vec<Vec<f64>>,
    value: f64,
    #[serde(flatten)]
    resampled: Resampled,
}

#[test]
fn probabilities_and_intervals_are_rliable_s() {
    for case in reference::<Vec<Case>>("improvement") {
        let (first, second) = (Sample::of_numbers(&case.first), Sample::of_numbers(&case.second));
        let estimate = probability_of_improvement(&first, &second, case.resampled.bootstrap());
        let estimate = estimate.expect("arms that fit");
        assert_close(estimate.value, case.value);
        case.resampled.assert_intervals([estimate.interval]);
    }
}

/// One task is always won, with many trainings, and one always lost, with few: they weigh the same.
#[test]
fn tasks_weigh_the_same() {
    let first = Sample::of_numbers(&[vec![2.0; 9], vec![1.0; 2]]);
    let second = Sample::of_numbers(&[vec![1.0; 9], vec![2.0; 2]]);

    let estimate = probability_of_improvement(&first, &second, Bootstrap::seeded(1)).expect("arms that fit");

    let interval = estimate.interval.expect("eleven trainings");
    assert_eq!((estimate.value, interval.low, interval.high), (0.5, 0.5, 0.5));
}

#[test]
fn arms_that_do_not_fit_have_no_probability() {
    let five = Sample::of_numbers(&[vec![1.0; 5]]);
    let of = |tasks: &[Vec<f64>]| probability_of_improvement(&five, &Sample::of_numbers(tasks), Bootstrap::seeded(1));

    assert_eq!(of(&[vec![1.0; 5], vec![1.0; 5]]), None);
    assert_eq!(of(&[vec![]]), None);
    assert_eq!(of(&[vec![1.0, f64::NAN]]), None);
    let (value, interval) = (0.5, None);
    assert_eq!(of(&[vec![1.0; 4]]), Some(Estimate { value, interval }));
}

proptest! {
    #[test]
    fn what_one_arm_wins_the_other_loses(
        first in prop::collection::vec(prop::collection::vec((0..6u8).prop_map(f64::from), 1..6), 2),
        second in prop::collection::vec(prop::collection::vec((0..6u8).prop_map(f64::from), 1..6), 2),
    ) {
        let (first, second) = (Sample::of_numbers(&first), Sample::of_numbers(&second));
        let of = |first, second| {
            let few = Bootstrap { resamples: 1, ..Bootstrap::seeded(1) };
            probability_of_improvement(first, second, few).expect("arms that fit").value
        };
        prop_assert!((of(&first, &second) + of(&second, &first) - 1.0).abs() < 1e-12);
        prop_assert!((of(&first, &first) - 0.5).abs() < 1e-12);
    }
}
