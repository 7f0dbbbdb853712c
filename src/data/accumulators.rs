//! The sums of an env's step on its device (spec 02 §6.2): allocated once, zeroed in place, written in place, read once.
//!
//! Training costs two operations a batch: predictions and mean losses are put aside in kept buffers, and one reduction
//! at the end of the training part turns them into the pack's columns. Validation adds per batch.

use std::ops::Range;

use tch::{Device, Kind, TchError, Tensor};

use super::PackLayout;

/// What an env adds up over a step; its content is the [read pack](PackLayout).
#[derive(Debug)]
pub struct Accumulators {
    layout: PackLayout,
    batch_size: usize,
    /// `f64 [layout.columns()]`.
    pack: Tensor,
    /// `f64 [M]`: mean loss of each training batch.
    losses: Tensor,
    batch_losses: Vec<Tensor>,
    /// `i64 [M·B]`.
    predictions: Tensor,
}

impl Accumulators {
    /// Allocates for steps of `batches` training batches of `batch_size` samples.
    ///
    /// # Errors
    /// libtorch's, when the device cannot hold them.
    pub fn new(device: Device, layout: PackLayout, batches: usize, batch_size: usize) -> Result<Self, TchError> {
        let losses = Tensor::f_zeros([batches as i64], (Kind::Double, device))?;
        Ok(Self {
            layout,
            batch_size,
            pack: Tensor::f_zeros([layout.columns() as i64], (Kind::Double, device))?,
            batch_losses: (0..batches as i64)
                .map(|batch| losses.f_get(batch))
                .collect::<Result<_, _>>()?,
            losses,
            predictions: Tensor::f_zeros([(batches * batch_size) as i64], (Kind::Int64, device))?,
        })
    }

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

    /// Puts aside a training (micro-)batch: `logits [n, C]` of the samples from `first_row` of batch `batch`, and their
    /// mean loss (detached, unsmoothed), of which the batch's loss takes the share `n/B`.
    ///
    /// # Errors
    /// libtorch's.
    pub fn record_train(
        &mut self,
        batch: usize,
        first_row: usize,
        logits: &Tensor,
        mean_loss: &Tensor,
    ) -> Result<(), TchError> {
        let rows = logits.size()[0];
        let start = (batch * self.batch_size + first_row) as i64;
        // An `out` operation refuses tensors that carry a graph.
        let rows_of_batch = self.predictions.f_narrow(0, start, rows)?;
        let _ = logits.f_detach()?.f_argmax_out(&rows_of_batch, 1, false)?;
        let batch_loss = &mut self.batch_losses[batch];
        if rows as usize == self.batch_size {
            batch_loss.f_copy_(mean_loss)
        } else {
            let share = rows as f64 / self.batch_size as f64;
            let part = mean_loss.f_to_kind(Kind::Double)?.f_mul_scalar(share)?;
            batch_loss.f_add_(&part).map(drop)
        }
    }

    /// Ends the training part of a step: `targets i64 [M·B]` are the labels of its samples. Batches with a non-finite
    /// loss are counted and left out of the loss, by selection and not by branching.
    ///
    /// # Errors
    /// libtorch's.
    pub fn finish_train(&mut self, targets: &Tensor) -> Result<(), TchError> {
        let units = self.batch_size as f64;
        let batches = self.batch_losses.len() as f64;
        let is_finite = self.losses.f_isfinite()?;
        let finite_batches = is_finite.f_sum(Kind::Double)?;
        let loss_sum = self
            .losses
            .f_where_scalarother(&is_finite, 0.0)?
            .f_sum(Kind::Double)?
            .f_mul_scalar(units)?;
        let correct = self.predictions.f_eq_tensor(targets)?.f_sum(Kind::Double)?;
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

    /// Adds a validation batch: losses and correctness of its rows, `[K, b]` as [`super::evaluate_rows`] returns them;
    /// `main` is the configuration that is the validation result.
    ///
    /// # Errors
    /// libtorch's; more configurations than the layout has are an error.
    pub fn add_val(&mut self, losses: &Tensor, is_correct: &Tensor, main: usize) -> Result<(), TchError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::StepNumbers;

    const LAYOUT: PackLayout = PackLayout { configs: 2, slots: 1 };

    fn accumulators(batches: usize, batch_size: usize) -> Accumulators {
        Accumulators::new(Device::Cpu, LAYOUT, batches, batch_size).unwrap()
    }

    fn read(accumulators: &Accumulators, configs: usize) -> StepNumbers {
        let pack = Vec::<f64>::try_from(accumulators.pack()).unwrap();
        LAYOUT.unpack(&pack, configs, 0)
    }

    fn mean_loss(value: f32) -> Tensor {
        Tensor::from(value)
    }

    #[test]
    fn validation_loss_is_weighted_by_samples_and_not_by_batches() {
        // Given 100 samples of loss 1 and 20 samples of loss 4.
        let mut sums = accumulators(1, 1);
        for (samples, loss) in [(100, 1.0), (20, 4.0)] {
            let losses = Tensor::full([1, samples], loss, (Kind::Float, Device::Cpu));
            let is_correct = Tensor::ones([1, samples], (Kind::Bool, Device::Cpu));
            sums.add_val(&losses, &is_correct, 0).unwrap();
        }

        let main = read(&sums, 1).configs[0];

        assert_eq!(main.loss(120), 1.5);
        assert_eq!(main.accuracy_percent(120), 100.0);
    }

    #[test]
    fn counts_stay_exact_beyond_the_integers_of_f32() {
        // Given 2^24 correct samples so far.
        let mut sums = accumulators(1, 1);
        let _ = sums.columns(LAYOUT.val_correct()).fill_(f64::from(1 << 24));

        let row = Tensor::zeros([1, 1], (Kind::Float, Device::Cpu));
        sums.add_val(&row, &row.eq(0.0), 0).unwrap();

        assert_eq!(read(&sums, 1).configs[0].correct, 16_777_217);
    }

    #[test]
    fn training_batches_with_a_non_finite_loss_are_counted_and_left_out() {
        // Given three batches of two samples, predicted as class 1, the second with a NaN loss.
        let mut sums = accumulators(3, 2);
        let logits = Tensor::from_slice2(&[[0.0f32, 1.0], [0.0, 1.0]]).set_requires_grad(true);
        for (batch, loss) in [1.0, f32::NAN, 4.0].into_iter().enumerate() {
            sums.record_train(batch, 0, &logits, &mean_loss(loss)).unwrap();
        }

        sums.finish_train(&Tensor::from_slice(&[1i64, 1, 1, 0, 0, 0])).unwrap();

        let numbers = read(&sums, 1);
        assert_eq!((numbers.loss_sum, numbers.finite_units), (10.0, 4));
        assert_eq!((numbers.nonfinite_batches, numbers.correct), (1, 3));
        assert_eq!(numbers.train_loss(), 2.5);
    }

    #[test]
    fn micro_batches_add_up_to_their_batch() {
        // Given a batch of four in parts of three and one.
        let mut sums = accumulators(1, 4);
        let logits = Tensor::from_slice2(&[[1.0f32, 0.0], [1.0, 0.0], [0.0, 1.0]]);
        sums.record_train(0, 0, &logits, &mean_loss(2.0)).unwrap();
        sums.record_train(0, 3, &logits.narrow(0, 0, 1), &mean_loss(6.0))
            .unwrap();

        sums.finish_train(&Tensor::from_slice(&[0i64, 0, 1, 1])).unwrap();

        let numbers = read(&sums, 1);
        assert_eq!(numbers.train_loss(), 3.0);
        assert_eq!(numbers.correct, 3);
    }

    #[test]
    fn a_new_step_starts_from_zero_in_the_same_storage() {
        let mut sums = accumulators(1, 1);
        let storage = sums.pack().data_ptr();
        let _ = sums.columns(LAYOUT.host_gradients()).fill_(3.0);

        sums.zero().unwrap();

        assert_eq!(read(&sums, 1).host_gradient_square_sum, 0.0);
        assert_eq!(sums.pack().data_ptr(), storage);
        // Without any batch there is no training loss to speak of.
        assert!(read(&sums, 1).train_loss().is_nan());
    }

    #[test]
    fn agreement_with_the_main_configuration_is_counted_per_configuration() {
        let mut sums = accumulators(1, 1);
        let is_correct = Tensor::from_slice(&[1u8, 1, 1, 0, 0, 1, 0, 1])
            .view([2, 4])
            .to_kind(Kind::Bool);
        let losses = Tensor::zeros([2, 4], (Kind::Float, Device::Cpu));

        sums.add_val(&losses, &is_correct, 0).unwrap();

        let without = read(&sums, 2).configs[1];
        assert_eq!((without.only_main_correct, without.only_this_correct), (2, 1));
    }
}
