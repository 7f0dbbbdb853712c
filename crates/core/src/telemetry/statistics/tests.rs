use super::*;

#[test]
fn rolling_values_are_absent_in_round_0_and_span_ten_rounds() {
    assert_eq!(rolling_mean(&[50.0]), None);
    assert_eq!(rolling_mean(&[50.0, 60.0]), Some(55.0));

    assert_eq!(rolling_mean(&[[0.0; 10], [40.0; 10]].concat()), Some(40.0));
}

#[test]
fn spread_is_that_of_the_population() {
    assert_eq!(mean_and_std(&[2.0, 4.0]), Some((3.0, 1.0)));
    assert_eq!(mean_and_std(&[]), None);
}

#[test]
fn the_median_lies_in_the_middle() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median(&[]), None);
}

/// 100 samples, 9 lost and 1 won without the seed: c = 8 points, se = sqrt(10 - 64/100) = 3.0594.
#[test]
fn a_contribution_has_a_paired_standard_error() {
    assert!((paired_standard_error(9, 1, 100) - 3.059_411_708_155_671).abs() < 1e-12);
    assert!((paired_standard_error(320, 200, 10_000) - 0.227_719_125_239_844_53).abs() < 1e-9);
    assert_eq!(paired_standard_error(0, 0, 100), 0.0);
}

#[test]
fn a_plateau_lasts_until_a_rise_by_more_than_the_least_one() {
    let mut plateau = Plateau::default();
    let lengths = [50.0, 50.25, 50.5, 50.6, 40.0, 50.7].map(|accuracy| {
        plateau.note(accuracy);
        plateau.length()
    });

    // 50.5 lies half a point above the first value, 50.6 more than that; 50.7 isn't a rise over 50.6.
    assert_eq!(lengths, [0, 1, 2, 0, 1, 2]);
}
