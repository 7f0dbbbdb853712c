use super::*;

/// A head that never had a choice has no entropy, and would pull the mean to zero.
#[test]
fn the_mean_entropy_is_that_of_heads_that_had_something_to_learn() {
    let entropies: BTreeMap<String, Num> = Head::ALL
        .iter()
        .map(|&head| (head.name().to_owned(), Num(head as usize as f64)))
        .collect();
    let mut learnable = [false; HEADS];
    assert_eq!(mean_of_learnable(&entropies, &learnable), None);
    (learnable[1], learnable[4]) = (true, true);
    assert_eq!(mean_of_learnable(&entropies, &learnable), Some(Num(2.5)));
}
