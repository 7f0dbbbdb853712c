//! The engine's own kernels for the beginning and end of a batch on a CPU: images, loss, sums over validation
//! (`batch.cpp`).

use tch::{TchError, Tensor};

use crate::torch::ffi::{self, pointer};

/// Gathers, converts and normalises images in one pass: `out[i] = windows[positions[i]]·a + b`, in two roundings, or 0 where
/// `masks[places[i]]` is set. `windows: u8 [windows, rows, run]` may overlap, as may `masks: bool [masks, rows, run]`;
/// `positions, places: i64 [n]`; `a, b: f32 [rows, run]`; `out: f32 [n, rows, run]`.
///
/// # Errors
/// Tensors that do not fit together, or a position beyond the windows or masks.
pub fn gather_images(
    [windows, positions]: [&Tensor; 2],
    masks_and_places: Option<[&Tensor; 2]>,
    [a, b]: [&Tensor; 2],
    out: &Tensor,
) -> Result<(), TchError> {
    let [masks, places] = masks_and_places.map_or([std::ptr::null(); 2], |pair| pair.map(Tensor::as_ptr));
    // SAFETY: all tensors outlive the call, which checks kinds, sizes and positions before it reads.
    unsafe {
        ffi::check_operator(ffi::simic_gather_images(
            windows.as_ptr(),
            positions.as_ptr(),
            masks,
            places,
            a.as_ptr(),
            b.as_ptr(),
            pointer(out),
        ))
    }
}

/// The place to which [`cross_entropy`] writes the numbers that training reports.
#[derive(Debug)]
pub struct LossRecord<'a> {
    /// `i64`: the prediction of each sample of the step.
    pub predictions: &'a Tensor,
    /// The first sample of the rows.
    pub first: usize,
    /// `f64`: the mean loss of each batch.
    pub losses: &'a Tensor,
    /// Index of the batch.
    pub batch: usize,
    /// Weight of the rows' mean loss in that of the batch.
    pub share: f64,
}

/// The objective of `logits: f32 [n, classes]` on `targets: i64 [n]`: the mean cross entropy with label smoothing, one node
/// of the graph. Predictions and the mean loss without smoothing go into `record`.
///
/// # Errors
/// Tensors that do not fit together, or a target that isn't a class.
pub fn cross_entropy(
    logits: &Tensor,
    targets: &Tensor,
    label_smoothing: f64,
    record: &LossRecord,
) -> Result<Tensor, TchError> {
    let mut out = std::ptr::null_mut();
    // SAFETY: all tensors outlive the call, which checks kinds, sizes and targets; on success `out` is a tensor of its own
    // that tch takes over.
    unsafe {
        ffi::check_operator(ffi::simic_cross_entropy(
            logits.as_ptr(),
            targets.as_ptr(),
            label_smoothing,
            pointer(record.predictions),
            record.first as i64,
            pointer(record.losses),
            record.batch as i64,
            record.share,
            &mut out,
        ))?;
        Ok(Tensor::from_ptr(out))
    }
}

/// First columns of the sums over validation, one column for each of at most `room` configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationColumns {
    /// Summed losses.
    pub losses: usize,
    /// Correct samples.
    pub correct: usize,
    /// Samples that the main configuration gets right too; not written for a single configuration.
    pub both_correct: usize,
    /// Columns of each block.
    pub room: usize,
}

/// Adds to the pack (f64) the results of `logits: f32 [K·n, classes]` of K configurations on `targets: i64 [n]`; `main`
/// is the configuration that the others are compared with.
///
/// # Errors
/// Tensors that do not fit together, more configurations than `room`, or a target that isn't a class.
pub fn add_validation(
    logits: &Tensor,
    targets: &Tensor,
    main: usize,
    pack: &Tensor,
    columns: ValidationColumns,
) -> Result<(), TchError> {
    // SAFETY: all tensors outlive the call, which checks kinds, sizes and targets; the columns lie in the pack, whose layout
    // made them.
    unsafe {
        ffi::check_operator(ffi::simic_add_validation(
            logits.as_ptr(),
            targets.as_ptr(),
            main as i64,
            pointer(pack),
            columns.losses as i64,
            columns.correct as i64,
            columns.both_correct as i64,
            columns.room as i64,
        ))
    }
}

#[cfg(test)]
mod tests;
