use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::compare::statistics::fixtures::{assert_close, reference};

#[derive(Deserialize)]
struct Case {
    raw: Vec<f64>,
    adjusted: Vec<f64>,
}

#[test]
fn adjusted_p_values_are_those_of_statsmodels() {
    for case in reference::<Vec<Case>>("holm") {
        let adjusted = holm(&case.raw);
        assert_eq!(adjusted.len(), case.adjusted.len());
        for (actual, expected) in adjusted.into_iter().zip(case.adjusted) {
            assert_close(actual, expected);
        }
    }
    assert!(holm(&[]).is_empty());
}

proptest! {
    #[test]
    fn corrections_keep_the_order_and_never_help(raw in prop::collection::vec(0.0..=1.0f64, 1..20)) {
        let adjusted = holm(&raw);
        for (index, &p) in raw.iter().enumerate() {
            prop_assert!(p <= adjusted[index] && adjusted[index] <= 1.0);
            for (other, &q) in raw.iter().enumerate() {
                prop_assert!(p > q || adjusted[index] <= adjusted[other]);
            }
        }
        // The smallest is Bonferroni's.
        let smallest = raw.iter().copied().fold(1.0, f64::min);
        let least = adjusted.iter().copied().fold(1.0, f64::min);
        prop_assert_eq!(least, (smallest * raw.len() as f64).min(1.0));
    }
}
