use super::*;
use crate::data::dataset::tests::digits_task;
use crate::data::digits;

#[test]
fn the_digits_split_is_the_published_one() {
    // After the header of an IDX file.
    let labels: Vec<i64> = digits::LABELS[8..].iter().map(|&label| label.into()).collect();

    let split = stratified(&labels, 10, digits_task().split);

    assert_eq!((split.train.len(), split.val.len(), split.test.len()), (1266, 355, 176));
    assert_eq!(split.train[..8], [1, 2, 3, 4, 5, 7, 8, 9]);
    assert_eq!(split.val[..8], [23, 41, 42, 49, 65, 70, 76, 83]);
    assert_eq!(split.test[..8], [0, 6, 10, 13, 18, 24, 36, 43]);
    assert_eq!(split.train.iter().sum::<usize>(), 1_135_251);
    assert_eq!(split.val.iter().sum::<usize>(), 324_528);
    assert_eq!(split.test.iter().sum::<usize>(), 153_927);
    let mut val_counts = [0; 10];
    split.val.iter().for_each(|&i| val_counts[labels[i] as usize] += 1);
    assert_eq!(val_counts, [35, 36, 35, 36, 36, 36, 36, 35, 34, 36]);
}
