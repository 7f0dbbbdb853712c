use super::*;

#[test]
fn micro_batches_are_even_and_larger_ones_come_first() {
    assert_eq!(micro_batches(10, 4).collect::<Vec<_>>(), [3, 3, 2, 2]);
    assert_eq!(micro_batches(8, 1).collect::<Vec<_>>(), [8]);
    assert_eq!(micro_batches(2, 5).collect::<Vec<_>>(), [1, 1]);
}
