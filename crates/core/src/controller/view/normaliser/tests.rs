use proptest::prelude::*;

use super::*;

#[test]
fn a_smaller_momentum_forgets() {
    let mut moments = RunningMoments::default();
    let mut seen = Vec::new();
    for batch in [&[1.0, 2.0, 3.0, 4.0][..], &[5.0, 6.0], &[100.0]] {
        moments.merge(batch.iter().copied(), 0.5);
        seen.push((moments.mean, moments.var));
    }
    assert_eq!(seen, [(2.5, 1.25), (4.0, 3.0), (52.0, 2305.5)]);
}

#[test]
fn batches_that_are_not_finite_or_empty_change_nothing() {
    let mut moments = RunningMoments::default();
    moments.merge([1.0, 3.0].into_iter(), 1.0);
    let before = moments;
    assert!(!moments.merge([f64::NAN].into_iter(), 1.0));
    assert!(moments.merge(std::iter::empty(), 1.0));
    assert_eq!(moments, before);
}

proptest! {
    /// With momentum 1 the order and size of batches leave no trace.
    #[test]
    fn merged_batches_equal_two_passes_over_all_values(
        batches in prop::collection::vec(prop::collection::vec(-100.0f64..100.0, 0..20), 1..8),
    ) {
        let mut moments = RunningMoments::default();
        for batch in &batches {
            prop_assert!(moments.merge(batch.iter().copied(), 1.0));
        }

        let all = batches.concat();
        prop_assume!(!all.is_empty());
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        let var = all.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        prop_assert!((moments.mean - mean).abs() < 1e-9, "{} is not {mean}", moments.mean);
        prop_assert!((moments.var - var).abs() < 1e-7 * (1.0 + var), "{} is not {var}", moments.var);
        prop_assert_eq!(moments.count, all.len() as u64);
    }
}
