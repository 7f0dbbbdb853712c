use super::*;

fn numbers(rows: &[[f32; 2]]) -> Vec<f64> {
    // Two layers of width 1.
    let values: Vec<f32> = (0..2)
        .flat_map(|layer| rows.iter().map(move |row| row[layer]))
        .collect();
    let state = RecurrentState(vec![Tensor::from_slice(&values).view([2, rows.len() as i64, 1])]);
    read_f64(&state_numbers(&state)[0], &HostSyncCounter::default()).unwrap()
}

#[test]
fn magnitudes_of_states_are_taken_over_all_sequences_and_one_by_one() {
    // Mean squares 12.5 and 0.
    assert_eq!(numbers(&[[3.0, -4.0], [0.0, 0.0]]), [2.5, 12.5f64.sqrt(), 0.0]);
}

#[test]
fn a_state_that_is_not_finite_is_noticed() {
    for bad in [f32::INFINITY, f32::NAN] {
        assert_eq!(numbers(&[[1.0, 0.0], [bad, 0.0]])[2], 1.0);
    }
}
