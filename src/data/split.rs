//! The stratified split (spec 02 §4.1): three disjoint parts that depend on the labels and the data set's own seed only.

use crate::random::{ContentRng, Domain, Draw};
use crate::scenario::SplitSpec;

use super::DataError;

/// Ascending sample indices of the three parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Split {
    /// Updates parameters.
    pub train: Vec<usize>,
    /// Feeds reward, observation and governor.
    pub val: Vec<usize>,
    /// Read by the final evaluation alone.
    pub test: Vec<usize>,
}

/// Splits each class on its own: its indices are shuffled, the first `test_permille` go to test, the next
/// `val_permille` to validation (both rounded down), the rest to train.
///
/// # Errors
/// `Split` when nothing would be left to train on by request.
pub fn stratified(labels: &[i64], classes: i64, spec: SplitSpec) -> Result<Split, DataError> {
    if spec.val_permille.saturating_add(spec.test_permille) >= 1000 {
        return Err(DataError::Split {
            val_permille: spec.val_permille,
            test_permille: spec.test_permille,
        });
    }
    let mut split = Split {
        train: Vec::new(),
        val: Vec::new(),
        test: Vec::new(),
    };
    for class in 0..classes {
        let mut members: Vec<usize> = (0..labels.len()).filter(|&index| labels[index] == class).collect();
        ContentRng::new(spec.seed, Domain::StratifiedSplit, &[class as u64]).shuffle(&mut members);
        let share = |permille: u64| (members.len() as u64 * permille / 1000) as usize;
        let (n_test, n_val) = (share(spec.test_permille), share(spec.val_permille));
        split.test.extend(&members[..n_test]);
        split.val.extend(&members[n_test..n_test + n_val]);
        split.train.extend(&members[n_test + n_val..]);
    }
    for part in [&mut split.train, &mut split.val, &mut split.test] {
        part.sort_unstable();
    }
    Ok(split)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{digits, idx};

    const DIGITS: SplitSpec = SplitSpec {
        seed: 0,
        val_permille: 200,
        test_permille: 100,
    };

    #[test]
    fn the_digits_split_is_the_published_one() {
        let labels = idx::parse_labels("digits", digits::LABELS).unwrap();

        let split = stratified(&labels, 10, DIGITS).unwrap();

        assert_eq!((split.train.len(), split.val.len(), split.test.len()), (1266, 355, 176));
        assert_eq!(split.train[..8], [1, 2, 3, 4, 5, 7, 8, 9]);
        assert_eq!(split.val[..8], [23, 41, 42, 49, 65, 70, 76, 83]);
        assert_eq!(split.test[..8], [0, 6, 10, 13, 18, 24, 36, 43]);
        assert_eq!(split.train.iter().sum::<usize>(), 1_135_251);
        assert_eq!(split.val.iter().sum::<usize>(), 324_528);
        assert_eq!(split.test.iter().sum::<usize>(), 153_927);
        let val_counts: Vec<usize> = (0..10)
            .map(|class| split.val.iter().filter(|&&i| labels[i] == class).count())
            .collect();
        assert_eq!(val_counts, [35, 36, 35, 36, 36, 36, 36, 35, 34, 36]);
    }

    #[test]
    fn a_split_that_leaves_nothing_to_train_on_is_refused() {
        let greedy = SplitSpec {
            val_permille: 600,
            test_permille: 400,
            ..DIGITS
        };

        assert!(matches!(stratified(&[0, 1], 2, greedy), Err(DataError::Split { .. })));
    }
}
