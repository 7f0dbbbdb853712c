//! Rows of recurrent state: taken out, put back, forgotten.

use tch::{Device, Kind, TchError, Tensor};

use super::trainable::RecurrentState;
use crate::torch::{NoGrad, upload};

/// The dimension that counts rows.
const ROWS: i64 = 1;

/// Methods panic where libtorch fails, as tch's do.
impl RecurrentState {
    /// Zeros of the given shapes `[layers, rows, width]`.
    pub fn zeros(shapes: &[[i64; 3]], device: Device) -> Self {
        Self(
            shapes
                .iter()
                .map(|shape| Tensor::zeros(shape, (Kind::Float, device)))
                .collect(),
        )
    }

    /// Copies of the given rows, in their order; `rows`: `[n]`, i64, on the state's device.
    pub fn select(&self, rows: &Tensor) -> Self {
        Self(self.0.iter().map(|tensor| tensor.index_select(ROWS, rows)).collect())
    }

    /// Overwrites the given rows with those of `from`, in order; `rows`: `[n]`, i64, on the state's device. All other rows keep
    /// their values.
    pub fn scatter(&mut self, rows: &Tensor, from: &Self) {
        let _no_grad = NoGrad::new();
        for (tensor, from) in self.0.iter_mut().zip(&from.0) {
            let _ = tensor.index_copy_(ROWS, rows, from);
        }
    }

    /// Zeroes the given rows: they remember nothing.
    pub fn reset(&mut self, rows: &[usize]) {
        let _no_grad = NoGrad::new();
        for tensor in &mut self.0 {
            for &row in rows {
                let _ = tensor.narrow(ROWS, row as i64, 1).zero_();
            }
        }
    }

    /// The same values without their history.
    pub fn detach(&self) -> Self {
        Self(self.0.iter().map(Tensor::detach).collect())
    }

    /// Second handles to the same tensors: a change of one shows in the other.
    pub fn shallow_clone(&self) -> Self {
        Self(self.0.iter().map(Tensor::shallow_clone).collect())
    }
}

/// Sequences of different length without their padding: all first steps, then all second ones, longest row first, as
/// libtorch's recurrent kernels want them.
#[derive(Debug)]
pub struct Packing {
    /// Row of each packed row.
    order: Tensor,
    /// Packed row of each row.
    place: Tensor,
    /// Rows that have a first step, a second, and so on: `[steps of the longest row]`, i64, on the CPU, where the kernels read it.
    pub batch_sizes: Tensor,
    /// Steps of each row: `[B]`, i64, on the device of the packed rows.
    pub lengths: Tensor,
    /// Flat `[B·T]` index of each packed step.
    steps: Tensor,
    shape: [i64; 2],
}

impl Packing {
    /// `lengths`: valid steps of each row, of `steps`. `None` if no row has padding. Does not wait for the device.
    ///
    /// # Errors
    /// libtorch's.
    pub fn new(lengths: &[i64], steps: i64, device: Device) -> Result<Option<Self>, TchError> {
        if lengths.iter().all(|&length| length >= steps) {
            return Ok(None);
        }
        // A row with only padding keeps one step: the kernels know no empty rows.
        let length = |row: i64| lengths[row as usize].clamp(1, steps);
        let rows = lengths.len() as i64;
        let mut order: Vec<i64> = (0..rows).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(length(row)));
        let mut place = vec![0; lengths.len()];
        for (packed, &row) in order.iter().enumerate() {
            place[row as usize] = packed as i64;
        }
        let (mut batch_sizes, mut flat) = (Vec::new(), Vec::new());
        for step in 0..length(order[0]) {
            let before = flat.len();
            let living = order.iter().take_while(|&&row| length(row) > step);
            flat.extend(living.map(|&row| row * steps + step));
            batch_sizes.push((flat.len() - before) as i64);
        }
        let on_device = |values: &[i64]| {
            let to = Tensor::f_empty([values.len() as i64], (Kind::Int64, device))?;
            let queued = upload(&to, values).map_err(|error| TchError::Torch(error.to_string()));
            queued.map(|()| to)
        };
        Ok(Some(Self {
            order: on_device(&order)?,
            place: on_device(&place)?,
            batch_sizes: Tensor::from_slice(&batch_sizes),
            lengths: on_device(&(0..rows).map(length).collect::<Vec<_>>())?,
            steps: on_device(&flat)?,
            shape: [rows, steps],
        }))
    }

    /// `[B, T, F]` to `[steps, F]`.
    pub fn pack(&self, x: &Tensor) -> Tensor {
        x.flatten(0, 1).index_select(0, &self.steps)
    }

    /// `[steps, F]` to `[B, T, F]`, zeros where there is padding.
    pub fn unpack(&self, packed: &Tensor) -> Tensor {
        let [rows, steps] = self.shape;
        let width = packed.size()[1];
        packed
            .new_zeros([rows * steps, width], (packed.kind(), packed.device()))
            .index_copy(0, &self.steps, packed)
            .view([rows, steps, width])
    }

    /// Initial state in packed order.
    pub fn pack_state(&self, state: &RecurrentState) -> RecurrentState {
        state.select(&self.order)
    }

    /// Final state in the rows' own order.
    pub fn unpack_state(&self, state: &RecurrentState) -> RecurrentState {
        state.select(&self.place)
    }
}
