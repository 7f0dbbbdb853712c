use super::*;
use crate::torch::{HostSyncCounter, read_f64};

fn numbers(rows: &[[f32; 2]]) -> [f64; STATE_NUMBERS] {
    // Two layers of width 1.
    let values: Vec<f32> = (0..2)
        .flat_map(|layer| rows.iter().map(move |row| row[layer]))
        .collect();
    let state = RecurrentState(vec![Tensor::from_slice(&values).view([2, rows.len() as i64, 1])]);
    let numbers = state_numbers(&row_numbers(&state)[0]);
    let numbers = read_f64(&numbers, &HostSyncCounter::default()).unwrap();
    numbers.try_into().unwrap()
}

#[test]
fn magnitudes_are_taken_over_all_rows_and_row_by_row() {
    let states = [numbers(&[[3.0, -4.0], [0.0, 0.0]])];
    let health = recurrent_health(&states, &[]);
    // Mean squares 12.5 and 0.
    assert_eq!(health.update_h_rms, Some(Num(2.5)));
    assert_eq!(health.update_h_env_rms_max, Some(Num(12.5f64.sqrt())));
    assert_eq!(health.update_h_env_rms_mean, Some(Num(12.5f64.sqrt() / 2.0)));
    assert_eq!(health.update_h_max, Some(Num(4.0)));
    assert_eq!((health.update_c_max, health.rollout_h_max), (None, None));
    assert_eq!((any_nan(&states), any_infinite(&states)), (Some(false), Some(false)));
    assert_eq!(any_nan(&[]), None, "a policy without memory");
}

#[test]
fn a_row_that_is_not_finite_is_noticed() {
    let infinite = [numbers(&[[1.0, f32::INFINITY], [0.0, 0.0]])];
    assert_eq!((any_nan(&infinite), any_infinite(&infinite)), (Some(false), Some(true)));
    let undefined = [numbers(&[[1.0, 0.0], [f32::NAN, 0.0]])];
    assert_eq!(
        (any_nan(&undefined), any_infinite(&undefined)),
        (Some(true), Some(false))
    );
    assert_eq!(recurrent_health(&undefined, &[]).update_h_rms, None);
}
