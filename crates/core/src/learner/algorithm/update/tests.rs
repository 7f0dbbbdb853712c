use super::*;

#[test]
fn minibatches_differ_by_at_most_one_sequence_and_cover_all() {
    let sizes = |count, parts| split(count, parts).map(|part| part.len()).collect::<Vec<_>>();
    assert_eq!(sizes(10, 3), [3, 3, 4]);
    assert_eq!(sizes(2, 4), [1, 1]);
    assert_eq!(sizes(5, 1), [5]);
}
