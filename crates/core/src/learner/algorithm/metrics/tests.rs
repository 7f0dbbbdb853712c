use super::*;

#[test]
fn explained_variance_is_measured_against_a_floor() {
    let (returns, values) = ([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5]);
    assert!((explained_variance(&returns, &values) - 0.8).abs() < 1e-9);

    let (returns, values) = (returns.map(|r| r * 0.1), values.map(|v| v * 0.1));
    assert!((explained_variance(&returns, &values) - 0.9975).abs() < 1e-9);
}

/// A head that never had a choice has no entropy, and would pull the mean to zero.
#[test]
fn the_mean_entropy_is_that_of_heads_that_had_something_to_learn() {
    let entropies: BTreeMap<String, Num> = Head::ALL
        .iter()
        .map(|&head| (head.name().to_owned(), Num(head as usize as f64)))
        .collect();
    let mut learnable = [0.0; HEADS];
    assert_eq!(mean_of_learnable(&entropies, &learnable), None);
    (learnable[1], learnable[4]) = (0.25, 1.0);
    assert_eq!(mean_of_learnable(&entropies, &learnable), Some(Num(2.5)));
}
