use super::*;
use crate::telemetry::examples;

#[test]
fn a_contribution_compares_all_on_with_the_player_off() {
    let matrix = examples::matrix();

    assert_eq!(matrix.all_on(), 0b11);
    assert_eq!((matrix.contribution(0), matrix.contribution(1)), (Some(5.0), Some(4.0)));
    assert_eq!(matrix.contribution_error(0), Some(paired_standard_error(6, 1, 100)));
    assert_eq!(matrix.contribution_error(1), Some(paired_standard_error(5, 1, 100)));
}

#[test]
fn what_was_not_measured_contributes_nothing() {
    let mut matrix = examples::matrix();
    matrix.rows.truncate(1);

    assert_eq!((matrix.accuracy(0b11), matrix.accuracy(0b01)), (Some(57.0), None));
    assert_eq!((matrix.contribution(0), matrix.contribution_error(0)), (None, None));
}
