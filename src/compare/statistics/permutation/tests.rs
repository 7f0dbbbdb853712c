use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::compare::statistics::fixtures::{assert_close, reference};

#[derive(Deserialize)]
struct Case {
    differences: Vec<f64>,
    p: f64,
}

fn p(differences: &[f64]) -> f64 {
    sign_flip(differences, 1).expect("differences")
}

#[test]
fn exact_tests_are_scipy_s() {
    for case in reference::<Vec<Case>>("sign_flips") {
        assert_close(p(&case.differences), case.p);
    }
}

/// The smallest number of pairs that allows a verdict.
#[test]
fn the_least_p_of_few_pairs() {
    assert_close(p(&[1.0]), 1.0);
    assert_close(p(&[1.0, 2.0, 3.0, 4.0, 5.0]), 0.0625);
    assert_close(p(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 0.031_25);
    assert_eq!(p(&[1.0; 20]), 2.0 / f64::from(1 << 20));
}

/// 0.1 + 0.2 − 0.3 is 0 in decimals but not in binary; the mean must be 0 in any order.
#[test]
fn sums_that_tie_in_decimals_tie() {
    assert_eq!(p(&[0.1, 0.2, -0.3]), 1.0);
    assert_eq!(p(&[-0.3, 0.2, 0.1]), 1.0);
    // 60.3 − 60.1 is not 50.3 − 50.1.
    assert_eq!(p(&[60.3 - 60.1, 50.1 - 50.3]), 1.0);
    assert_eq!(p(&[0.0; 3]), 1.0);
}

#[test]
fn of_many_pairs_signs_are_drawn() {
    // Given 30 differences, of which 20 are 1 and 10 are −1.
    let differences = [vec![1.0; 20], vec![-1.0; 10]].concat();

    let drawn = sign_flip(&differences, 7).expect("differences");

    // Then 10 or fewer, or 20 or more of 30 fair coins: 0.0987, with a standard error of 0.001.
    assert!((drawn - 0.098_737).abs() < 0.004, "{drawn}");
    assert_eq!(Some(drawn), sign_flip(&differences, 7));
    assert_ne!(Some(drawn), sign_flip(&differences, 8));
}

/// More pairs than a word has bits, all ahead: no draw is as extreme, but the observed one counts.
#[test]
fn no_drawn_p_is_zero() {
    assert_eq!(sign_flip(&[1.0; 100], 3), Some(1.0 / 100_001.0));
}

#[test]
fn nothing_is_tested_without_pairs_or_with_values_that_are_none() {
    assert_eq!(sign_flip(&[], 1), None);
    assert_eq!(sign_flip(&[1.0, f64::NAN], 1), None);
}

proptest! {
    #[test]
    fn arms_may_change_places_and_units(
        differences in prop::collection::vec(-10.0..10.0f64, 1..11),
        unit in 0.01..100.0f64,
    ) {
        let scaled = |by: f64| differences.iter().map(|difference| difference * by).collect::<Vec<_>>();
        let here = p(&differences);
        prop_assert!(0.0 < here && here <= 1.0);
        prop_assert_eq!(here, p(&scaled(-1.0)));
        prop_assert_eq!(here, p(&scaled(unit)));
    }
}
