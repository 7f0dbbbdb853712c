//! The stratified split: three disjoint parts that depend on the labels and the data set's own seed only.

use crate::random::{ContentRng, Domain, Draw};
use crate::scenario::SplitSpec;

/// Ascending sample indices of the three parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Split {
    /// Updates parameters.
    pub train: Vec<usize>,
    /// Feeds reward, observation and governor.
    pub val: Vec<usize>,
    /// Read only by the final evaluation.
    pub test: Vec<usize>,
}

/// Splits each class on its own: its indices are shuffled, the first `test_permille` go to test, the next
/// `val_permille` to validation (both rounded down), the rest to train.
pub fn stratified(labels: &[i64], classes: i64, spec: SplitSpec) -> Split {
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
    split
}

#[cfg(test)]
mod tests;
