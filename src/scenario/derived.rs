//! What follows from a task: sizes of its parts, batches per step. Pure arithmetic.

use super::task::{BatchesPerStep, DataSource, SplitSpec, TaskSpec};
use crate::growth::SlotId;

/// Images of each class in the embedded digits.
const DIGITS_PER_CLASS: [u64; 10] = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180];

/// Samples in each part of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSizes {
    /// Training samples.
    pub train: usize,
    /// Validation samples.
    pub val: usize,
    /// Test samples.
    pub test: usize,
}

/// What a sample looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageShape {
    /// Number of labels.
    pub classes: i64,
    /// Colour channels.
    pub channels: i64,
    /// Pixels.
    pub height: i64,
    /// Pixels.
    pub width: i64,
}

impl DataSource {
    /// `None` where only the files can tell.
    pub fn shape(&self) -> Option<ImageShape> {
        let signed = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        match self {
            Self::Digits => Some(ImageShape {
                classes: 10,
                channels: 1,
                height: 8,
                width: 8,
            }),
            Self::SynthImages(synth) => Some(ImageShape {
                classes: i64::try_from(synth.classes).unwrap_or(i64::MAX),
                channels: signed(synth.channels),
                height: signed(synth.height),
                width: signed(synth.width),
            }),
            Self::Idx { .. } => None,
        }
    }

    /// Part sizes under `split`, `None` where only the files can tell.
    pub fn part_sizes(&self, split: &SplitSpec) -> Option<PartSizes> {
        match self {
            Self::Digits => {
                let total: u64 = DIGITS_PER_CLASS.iter().sum();
                let share = |permille: u64| -> u64 { DIGITS_PER_CLASS.iter().map(|n| n * permille / 1000).sum() };
                let (val, test) = (share(split.val_permille), share(split.test_permille));
                Some(PartSizes {
                    train: total.saturating_sub(val + test) as usize,
                    val: val as usize,
                    test: test as usize,
                })
            }
            Self::SynthImages(synth) => Some(PartSizes {
                train: synth.train,
                val: synth.val,
                test: synth.test,
            }),
            Self::Idx { .. } => None,
        }
    }
}

impl TaskSpec {
    /// Enabled slots in the policy's order.
    pub fn ordered_slots(&self) -> Vec<SlotId> {
        let mut slots = self.slots.clone();
        slots.sort_unstable();
        slots
    }

    /// Rows of a validation batch.
    pub fn val_rows(&self) -> usize {
        self.val_batch_size.unwrap_or_else(|| self.batch_size.saturating_mul(4))
    }

    /// Training batches per env and step; 0 where the training part is too small.
    pub fn train_batches(&self, train_samples: usize, n_envs: usize) -> usize {
        let rows = self.batch_size.max(1);
        match self.batches_per_step {
            BatchesPerStep::Full => train_samples / rows,
            BatchesPerStep::Count(_) if rows > train_samples => 0,
            BatchesPerStep::Count(count) => count,
            BatchesPerStep::Shard => train_samples / rows.saturating_mul(n_envs.max(1)),
        }
    }
}

#[cfg(test)]
mod tests;
