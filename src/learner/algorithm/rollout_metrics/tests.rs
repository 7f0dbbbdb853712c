use super::*;

#[test]
fn explained_variance_is_measured_against_a_floor() {
    let (returns, values) = ([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5]);
    let fit = critic_quality(&returns, &values, &[]);
    assert!((fit.explained_variance.unwrap().0 - 0.8).abs() < 1e-9);
    assert!((fit.value_nrmse.unwrap().0 - 0.236_068_0).abs() < 1e-6);
    assert!(!is_low_variance(&returns));

    let (returns, values) = (returns.map(|r| r * 0.1), values.map(|v| v * 0.1));
    let small = critic_quality(&returns, &values, &[]);
    assert!((small.explained_variance.unwrap().0 - 0.9975).abs() < 1e-9);
    assert!(is_low_variance(&returns));
}

#[test]
fn without_spread_there_is_no_correlation_and_no_shape() {
    assert_eq!(correlation(&[1.0, 2.0], &[5.0, 5.0]), 0.0);
    assert_eq!(standardised_moment(&[2.0; 5], 3), None);
}

#[test]
fn quantiles_lie_between_their_neighbours() {
    let values = [4.0, 0.0, 1.0, 3.0, 2.0];
    assert_eq!([0.1, 0.5, 0.9].map(|share| quantile(&values, share)), [0.4, 2.0, 3.6]);
}
