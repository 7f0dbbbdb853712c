//! The sums of an env's step on its device: allocated once, zeroed in place, written in place, read once.
//!
//! Training costs two operations a batch: kept buffers take predictions and mean losses, and one reduction
//! at the end of the training part turns them into the pack's columns. Validation adds per batch.
//!
//! Loss and correctness: per sample `ℓ = logsumexp(z) − z_y` in f32 for any type of logits; a sample is correct when the first
//! largest logit is its target's. Small hosts spend their time in dispatch, so each function is as few operations as it can be.

use std::ops::Range;

use tch::{Kind, Reduction, TchError, Tensor};

use super::pack::PackLayout;
use crate::kernels::{LossRecord, add_validation, cross_entropy, is_served};
use crate::torch::Backend;

/// Sums that an env collects over a step; their content is the [read pack](PackLayout).
#[derive(Debug)]
pub struct Accumulators {
    layout: PackLayout,
    own_kernels: bool,
    /// Predictions a sample, and a batch.
    units_per_sample: usize,
    batch_units: usize,
    batches: usize,
    /// `f64 [layout.columns()]`.
    pack: Tensor,
    /// `f64 [M + 1]`: mean loss of each training batch, and the place aside.
    losses: Tensor,
    batch_losses: Vec<Tensor>,
    /// `i64 [(M + 1) · predictions a batch]`.
    predictions: Tensor,
}

impl Accumulators {
    /// Allocates for steps of `batches` training batches of `batch_size` samples, each with `units_per_sample` predictions: 1 for
    /// images.
    ///
    /// # Errors
    /// libtorch's, when the device cannot hold them.
    pub fn new(
        backend: Backend,
        layout: PackLayout,
        batches: usize,
        (batch_size, units_per_sample): (usize, usize),
    ) -> Result<Self, TchError> {
        let batch_units = batch_size * units_per_sample;
        let device = backend.device;
        let places = batches + 1;
        let losses = Tensor::f_zeros([places as i64], (Kind::Double, device))?;
        Ok(Self {
            layout,
            own_kernels: backend.uses_own_kernels(),
            units_per_sample,
            batch_units,
            batches,
            pack: Tensor::f_zeros([layout.columns() as i64], (Kind::Double, device))?,
            batch_losses: (0..places as i64)
                .map(|batch| losses.f_get(batch))
                .collect::<Result<_, _>>()?,
            losses,
            predictions: Tensor::f_zeros([(places * batch_units) as i64], (Kind::Int64, device))?,
        })
    }

    /// Columns of the pack.
    pub fn layout(&self) -> PackLayout {
        self.layout
    }

    /// The vector to read at the end of the step.
    pub fn pack(&self) -> &Tensor {
        &self.pack
    }

    /// A view of columns, into which gradient statistics and skip flags are written in place.
    pub fn columns(&self, columns: Range<usize>) -> Tensor {
        self.pack.narrow(0, columns.start as i64, columns.len() as i64)
    }

    /// Starts a step.
    ///
    /// # Errors
    /// libtorch's.
    pub fn zero(&mut self) -> Result<(), TchError> {
        let _ = self.pack.f_zero_()?;
        let _ = self.losses.f_zero_()?;
        Ok(())
    }

    /// The objective of a training (micro-)batch, with its graph: `logits [n, C]` on `targets i64 [n]`, for texts
    /// `[n, T, C]` on `[n, T]`, the samples from `first_row` of batch `batch`. Puts aside what they predict and their mean
    /// loss without smoothing. Its share in the batch's loss is `n/B`.
    ///
    /// # Errors
    /// libtorch's.
    pub fn train_loss(
        &mut self,
        (batch, first_row): (usize, usize),
        logits: &Tensor,
        targets: &Tensor,
        label_smoothing: f64,
    ) -> Result<Tensor, TchError> {
        let (logits, targets) = &flat(logits, targets)?;
        let first_unit = first_row * self.units_per_sample;
        if self.own_kernels && is_served(logits) {
            let record = LossRecord {
                predictions: &self.predictions,
                first: batch * self.batch_units + first_unit,
                losses: &self.losses,
                batch,
                share: targets.numel() as f64 / self.batch_units as f64,
            };
            return cross_entropy(logits, targets, label_smoothing, &record);
        }
        let (objective, mean) = train_loss(logits, targets, label_smoothing)?;
        self.record_train(batch, first_unit, logits, &mean)?;
        Ok(objective)
    }

    /// The number under which a recorded batch puts its results down, whichever of the step it is.
    pub fn aside(&self) -> usize {
        self.batches
    }

    /// Takes what lies aside for the results of batch `batch`.
    ///
    /// # Errors
    /// libtorch's.
    pub fn take_aside(&mut self, batch: usize) -> Result<(), TchError> {
        let units = self.batch_units as i64;
        let predictions = |batch: usize| self.predictions.f_narrow(0, batch as i64 * units, units);
        predictions(batch)?.f_copy_(&predictions(self.batches)?)?;
        let loss = self.batch_losses[self.batches].shallow_clone();
        self.batch_losses[batch].f_copy_(&loss)?;
        self.forget_batch(self.batches)
    }

    /// Clears the loss of batch `batch`, which is computed again.
    ///
    /// # Errors
    /// libtorch's.
    pub fn forget_batch(&mut self, batch: usize) -> Result<(), TchError> {
        self.batch_losses[batch].f_zero_().map(drop)
    }

    fn record_train(
        &mut self,
        batch: usize,
        first_unit: usize,
        logits: &Tensor,
        mean_loss: &Tensor,
    ) -> Result<(), TchError> {
        let rows = logits.size()[0];
        let start = (batch * self.batch_units + first_unit) as i64;
        // An `out` operation refuses tensors that carry a graph.
        let rows_of_batch = self.predictions.f_narrow(0, start, rows)?;
        let _ = logits.f_detach()?.f_argmax_out(&rows_of_batch, 1, false)?;
        let batch_loss = &mut self.batch_losses[batch];
        if rows as usize == self.batch_units {
            batch_loss.f_copy_(mean_loss)
        } else {
            let share = rows as f64 / self.batch_units as f64;
            let part = mean_loss.f_to_kind(Kind::Double)?.f_mul_scalar(share)?;
            batch_loss.f_add_(&part).map(drop)
        }
    }

    /// Ends the training part of a step: `targets i64 [M·B]` are the labels of its samples, or the targets of all their tokens. Batches with a non-finite
    /// loss are counted and left out of the loss, by selection and not by branching.
    ///
    /// # Errors
    /// libtorch's.
    pub fn finish_train(&mut self, targets: &Tensor) -> Result<(), TchError> {
        let units = self.batch_units as f64;
        let batches = self.batches as f64;
        let losses = self.losses.f_narrow(0, 0, self.batches as i64)?;
        let predictions = self.predictions.f_narrow(0, 0, targets.numel() as i64)?;
        let is_finite = losses.f_isfinite()?;
        let finite_batches = is_finite.f_sum(Kind::Double)?;
        let loss_sum = losses
            .f_where_scalarother(&is_finite, 0.0)?
            .f_sum(Kind::Double)?
            .f_mul_scalar(units)?;
        let correct = predictions.f_eq_tensor(targets)?.f_sum(Kind::Double)?;
        for (column, value) in [
            (PackLayout::LOSS_SUM, &loss_sum),
            (PackLayout::CORRECT, &correct),
            (PackLayout::FINITE_UNITS, &finite_batches.f_mul_scalar(units)?),
            (
                PackLayout::NONFINITE_BATCHES,
                &finite_batches.f_neg()?.f_add_scalar(batches)?,
            ),
        ] {
            self.pack.f_get(column as i64)?.f_copy_(value)?;
        }
        Ok(())
    }

    /// Adds a validation batch: `logits [K·b, C]` of K configurations on the same `targets i64 [b]`, rows `k·b..(k+1)·b`
    /// being those of configuration k; for texts `[K·b, T, C]` on `[b, T]`. `main` is the configuration that is the validation
    /// result.
    ///
    /// # Errors
    /// libtorch's; more configurations than the layout has are an error.
    pub fn add_val(&mut self, logits: &Tensor, targets: &Tensor, main: usize) -> Result<(), TchError> {
        let (logits, targets) = &flat(logits, targets)?;
        if self.own_kernels && is_served(logits) {
            return add_validation(logits, targets, main, &self.pack, self.layout.validation());
        }
        let (losses, is_correct) = evaluate_rows(logits, targets)?;
        self.add_rows(&losses, &is_correct, main)
    }

    /// Losses and correctness of rows, `[K, b]`.
    fn add_rows(&mut self, losses: &Tensor, is_correct: &Tensor, main: usize) -> Result<(), TchError> {
        let configs = losses.size()[0];
        let add = |pack: &Tensor, block: Range<usize>, rows: &Tensor| -> Result<(), TchError> {
            let sums = rows.f_sum_dim_intlist(1i64, false, Kind::Double)?;
            pack.f_narrow(0, block.start as i64, block.len() as i64)?
                .f_narrow(0, 0, configs)?
                .f_add_(&sums)
                .map(drop)
        };
        add(&self.pack, self.layout.val_loss_sum(), losses)?;
        add(&self.pack, self.layout.val_correct(), is_correct)?;
        if configs > 1 {
            let main_correct = is_correct.f_get(main as i64)?;
            let both_correct = is_correct.f_logical_and(&main_correct)?;
            add(&self.pack, self.layout.val_both_correct(), &both_correct)?;
        }
        Ok(())
    }
}

/// Logits and targets with one row per prediction.
fn flat(logits: &Tensor, targets: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    match logits.size().as_slice() {
        [_, _, classes] => Ok((logits.f_reshape([-1, *classes])?, targets.f_reshape([-1])?)),
        _ => Ok((logits.shallow_clone(), targets.shallow_clone())),
    }
}

/// No label is ever negative, so nothing is ignored.
const IGNORE_NOTHING: i64 = -100;

/// Mean cross-entropy of `logits [n, C]` on `targets i64 [n]`: to minimise, with the graph, and to report, without smoothing,
/// detached and in f32. With smoothing ε the first is `(1−ε)·ℓ + ε·mean_k(logsumexp(z) − z_k)`.
///
/// # Errors
/// libtorch's, when shapes or devices disagree.
fn train_loss(logits: &Tensor, targets: &Tensor, label_smoothing: f64) -> Result<(Tensor, Tensor), TchError> {
    let log_probabilities = logits.f_log_softmax(-1, Kind::Float)?;
    let plain = log_probabilities.f_nll_loss::<Tensor>(targets, None, Reduction::Mean, IGNORE_NOTHING)?;
    let mean = plain.f_detach()?;
    let objective = if label_smoothing == 0.0 {
        plain
    } else {
        let spread = log_probabilities.f_mean(None)?;
        plain
            .f_mul_scalar(1.0 - label_smoothing)?
            .f_sub(&spread.f_mul_scalar(label_smoothing)?)?
    };
    Ok((objective, mean))
}

/// Loss (f32) and correctness (bool) of each row, both `[K, b]`, for `logits [K·b, C]` of K configurations on the same
/// `targets i64 [b]`; rows `k·b..(k+1)·b` belong to configuration k. For texts, `[K·b, T, C]` on `[b, T]`, each token is a
/// row.
///
/// # Errors
/// libtorch's, when shapes or devices disagree.
pub fn evaluate_rows(logits: &Tensor, targets: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    let targets = targets.f_reshape([-1])?;
    let samples = targets.numel() as i64;
    let classes = logits.size().last().copied().unwrap_or(0);
    let logits = logits.f_reshape([-1, samples, classes])?;
    let configurations = logits.size()[0];
    let index = targets
        .f_view([1, samples, 1])?
        .f_expand([configurations, samples, 1], true)?;
    let losses = logits
        .f_log_softmax(-1, Kind::Float)?
        .f_gather(2, &index, false)?
        .f_squeeze_dim(2)?
        .f_neg_()?;
    let is_correct = logits.f_argmax(2, false)?.f_eq_tensor(&targets)?;
    Ok((losses, is_correct))
}

#[cfg(test)]
mod tests;
