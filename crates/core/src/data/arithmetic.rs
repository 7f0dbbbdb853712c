//! The number and size of a step's batches, determined once, before anything is allocated.

use crate::files::counted;
use crate::scenario::{BatchesPerStep, TaskSpec, ValBatches};

use super::DataError;

/// The envs that see the same samples in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Every env has its own order and augmentation.
    PerEnv,
    /// One order. Every env takes its own consecutive part of it.
    Shard,
}

/// Batch counts and sizes of every env and step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedArithmetic {
    /// The envs that see the same samples.
    pub sharing: Sharing,
    /// Samples of the training part.
    pub n_train: usize,
    /// Samples of the validation part.
    pub n_val: usize,
    /// Training samples a batch (B). The incomplete tail of a pass is dropped.
    pub batch_size: usize,
    /// Training batches per env and step (M).
    pub batches: usize,
    /// Training batches of one pass over the training part.
    pub batches_per_pass: usize,
    /// Validation samples a batch. The last batch may be short.
    pub val_batch_size: usize,
    /// Validation batches a step (V): always the first ones, in data order.
    pub val_batches: usize,
    /// Predictions per sample: 1 for an image, one per token for a text. Losses and accuracies are over these.
    pub units_per_sample: usize,
}

impl FeedArithmetic {
    /// Arithmetic of counts of training and validation samples, each with one prediction.
    ///
    /// # Errors
    /// A batch that is too large, with the largest legal size, or more validation batches than there are.
    pub fn new(task: &TaskSpec, n_train: usize, n_val: usize, n_envs: usize) -> Result<Self, DataError> {
        let batch_size = task.batch_size;
        let (sharing, shards, mode) = match task.batches_per_step {
            BatchesPerStep::Shard => (Sharing::Shard, n_envs.max(1), "shard"),
            BatchesPerStep::Full => (Sharing::PerEnv, 1, "full"),
            BatchesPerStep::Count(_) => (Sharing::PerEnv, 1, "count"),
        };
        let max_batch = n_train / shards;
        if batch_size > max_batch {
            let asked = counted(n_envs, "env");
            let asked = format!("task.batch_size {batch_size} with batches_per_step {mode} and {asked}");
            return Err(DataError::new(
                format!("{asked} leaves no training batch of {n_train} samples"),
                format!("the largest legal batch_size is {max_batch}"),
            ));
        }
        let val_batch_size = task.val_rows();
        let all_val_batches = n_val.div_ceil(val_batch_size);
        Ok(Self {
            sharing,
            n_train,
            n_val,
            batch_size,
            batches: task.train_batches(n_train, n_envs),
            batches_per_pass: n_train / batch_size,
            val_batch_size,
            val_batches: match task.val_batches_per_step {
                ValBatches::Full => all_val_batches,
                ValBatches::Count(count) if count > all_val_batches => {
                    let fault = format!("task.val_batches_per_step is {count}");
                    return Err(DataError::new(fault, format!("it must be in 1..={all_val_batches}")));
                }
                ValBatches::Count(count) => count,
            },
            units_per_sample: 1,
        })
    }

    /// Training samples per env and step.
    pub fn train_samples(&self) -> usize {
        self.batches * self.batch_size
    }

    /// Validation samples per env and step.
    pub fn val_samples(&self) -> usize {
        self.n_val.min(self.val_batches * self.val_batch_size)
    }

    /// Predictions per training batch.
    pub fn batch_units(&self) -> usize {
        self.batch_size * self.units_per_sample
    }

    /// Predictions in training, per env and step.
    pub fn train_units(&self) -> usize {
        self.train_samples() * self.units_per_sample
    }

    /// Predictions in validation, per env and step.
    pub fn val_units(&self) -> usize {
        self.val_samples() * self.units_per_sample
    }
}

#[cfg(test)]
mod tests;
