use super::*;

#[test]
fn explained_variance_is_measured_against_a_floor() {
    let (returns, values) = ([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5]);
    assert!((explained_variance(&returns, &values) - 0.8).abs() < 1e-9);

    let (returns, values) = (returns.map(|r| r * 0.1), values.map(|v| v * 0.1));
    assert!((explained_variance(&returns, &values) - 0.9975).abs() < 1e-9);
}
