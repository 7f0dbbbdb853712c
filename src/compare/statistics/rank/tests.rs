use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::compare::statistics::fixtures::{assert_close, reference};

#[derive(Deserialize)]
struct Case {
    first: Vec<f64>,
    second: Vec<f64>,
    u: f64,
    exact_p: Option<f64>,
    normal_p: f64,
}

fn p(first: &[f64], second: &[f64]) -> f64 {
    mann_whitney(first, second).expect("values in both arms")
}

/// The approximation, for any sizes.
fn normal(first: &[f64], second: &[f64]) -> f64 {
    let u = wins(first, second);
    let larger = u.max((first.len() * second.len()) as f64 - u);
    normal_p(larger, first.len(), second.len(), tie_term(first, second))
}

#[test]
fn p_and_shift_are_scipy_s_and_numpy_s() {
    for case in reference::<Vec<Case>>("ranks") {
        let (first, second) = (&case.first, &case.second);
        assert_close(wins(first, second), case.u);
        assert_close(normal(first, second), case.normal_p);
        let is_small = first.len().max(second.len()) <= 20;
        let expected = case.exact_p.filter(|_| is_small).unwrap_or(case.normal_p);
        assert_close(p(first, second), expected);
    }
}

#[test]
fn arms_without_values_or_with_values_that_are_none_cannot_be_ranked() {
    assert_eq!(mann_whitney(&[], &[1.0]), None);
    assert_eq!(mann_whitney(&[1.0], &[f64::NAN]), None);
    assert_eq!(mann_whitney(&[1.0], &[f64::INFINITY]), None);
}

/// Share of all ways to choose the first arm's places, as bits of `chosen`, that have as extreme a U.
fn p_by_enumeration(first: &[f64], second: &[f64]) -> f64 {
    let all = [first, second].concat();
    let middle = (first.len() * second.len()) as f64 / 2.0;
    let extremeness = |ours: &[f64], theirs: &[f64]| (wins(ours, theirs) - middle).abs();
    let observed = extremeness(first, second);
    let ways = (0..1_u32 << all.len()).filter(|chosen| chosen.count_ones() as usize == first.len());
    let (mut extreme, mut count) = (0, 0);
    for chosen in ways {
        let arm = |bit: u32| -> Vec<f64> {
            let places = (0..all.len()).filter(|place| (chosen >> place) & 1 == bit);
            places.map(|place| all[place]).collect()
        };
        count += 1;
        extreme += usize::from(extremeness(&arm(1), &arm(0)) >= observed);
    }
    extreme as f64 / f64::from(count)
}

/// Values that differ, in any order.
fn distinct(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    let values: Vec<f64> = (0..40).map(f64::from).collect();
    prop::sample::subsequence(values, count).prop_shuffle()
}

proptest! {
    #[test]
    fn the_exact_p_is_that_of_all_orders(values in distinct(2..9), split in 1..8usize) {
        let (first, second) = values.split_at(split.min(values.len() - 1));
        prop_assert!((p(first, second) - p_by_enumeration(first, second)).abs() < 1e-12);
    }

    #[test]
    fn arms_may_change_places(
        first in prop::collection::vec((0..12u8).prop_map(f64::from), 1..26),
        second in prop::collection::vec((0..12u8).prop_map(f64::from), 1..26),
    ) {
        let there = p(&first, &second);
        prop_assert_eq!(wins(&first, &second) + wins(&second, &first), (first.len() * second.len()) as f64);
        prop_assert_eq!(there, p(&second, &first));
        prop_assert!(0.0 < there && there <= 1.0);
    }

    #[test]
    fn shifts_of_both_arms_move_nothing(values in distinct(4..20), shift in -30..30i32) {
        let (first, second) = values.split_at(values.len() / 2);
        let shift = f64::from(shift);
        let move_all = |arm: &[f64]| arm.iter().map(|value| value + shift).collect::<Vec<_>>();
        prop_assert_eq!(mann_whitney(first, second), mann_whitney(&move_all(first), &move_all(second)));
    }
}
