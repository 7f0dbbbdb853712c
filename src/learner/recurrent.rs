//! Health of recurrent states: saturation and divergence show here before they show in losses (spec 04 §12).

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use crate::controller::RecurrentState;
use crate::torch::NoGrad;

/// Numbers of [`state_numbers`] per state tensor.
pub(super) const STATE_NUMBERS: usize = 6;

/// Of one state tensor (of an LSTM: hidden, then cell) over several sequences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateHealth {
    /// Root mean square over all elements.
    pub rms: Option<f64>,
    /// Mean and largest root mean square of a sequence.
    pub env_rms_mean: Option<f64>,
    pub env_rms_max: Option<f64>,
    pub max: Option<f64>,
    pub has_nan: bool,
    pub has_inf: bool,
}

/// Per state tensor `f64 [rows, 4]` on its device: mean square, largest magnitude, any NaN, any infinity of each row.
pub(super) fn row_numbers(state: &RecurrentState) -> Vec<Tensor> {
    let _no_grad = NoGrad::new();
    let numbers = |tensor: &Tensor| {
        let tensor = tensor.detach().to_kind(Kind::Double);
        let but_rows = [0i64, 2];
        let any = |is: Tensor| is.to_kind(Kind::Double).amax(but_rows, false);
        let parts = [
            tensor.square().mean_dim(but_rows.as_slice(), false, Kind::Double),
            tensor.abs().amax(but_rows, false),
            any(tensor.isnan()),
            any(tensor.isinf()),
        ];
        Tensor::stack(&parts, 1)
    };
    state.0.iter().map(numbers).collect()
}

/// One f64 vector from the [`row_numbers`] of a state tensor, for [`StateHealth::from_numbers`].
pub(super) fn state_numbers(rows: &Tensor) -> Tensor {
    let _no_grad = NoGrad::new();
    let squares = rows.select(1, 0);
    let by_row = squares.sqrt();
    let parts = [
        squares.mean(Kind::Double).sqrt(),
        by_row.mean(Kind::Double),
        by_row.max(),
        rows.select(1, 1).max(),
        rows.select(1, 2).max(),
        rows.select(1, 3).max(),
    ];
    Tensor::stack(&parts, 0)
}

impl StateHealth {
    pub(super) fn from_numbers(numbers: [f64; STATE_NUMBERS]) -> Self {
        let finite = |value: f64| value.is_finite().then_some(value);
        Self {
            rms: finite(numbers[0]),
            env_rms_mean: finite(numbers[1]),
            env_rms_max: finite(numbers[2]),
            max: finite(numbers[3]),
            has_nan: numbers[4] > 0.0,
            has_inf: numbers[5] > 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torch::{HostSyncCounter, read_f64};

    fn health(rows: &[[f32; 2]]) -> StateHealth {
        // Two layers of width 1.
        let values: Vec<f32> = (0..2)
            .flat_map(|layer| rows.iter().map(move |row| row[layer]))
            .collect();
        let state = RecurrentState(vec![Tensor::from_slice(&values).view([2, rows.len() as i64, 1])]);
        let numbers = state_numbers(&row_numbers(&state)[0]);
        let numbers = read_f64(&numbers, &HostSyncCounter::default()).unwrap();
        StateHealth::from_numbers(numbers.try_into().unwrap())
    }

    #[test]
    fn magnitudes_are_taken_over_all_rows_and_row_by_row() {
        let health = health(&[[3.0, -4.0], [0.0, 0.0]]);
        // Mean squares 12.5 and 0.
        assert_eq!(health.rms, Some(2.5));
        assert_eq!(health.env_rms_max, Some(12.5f64.sqrt()));
        assert_eq!(health.env_rms_mean, Some(12.5f64.sqrt() / 2.0));
        assert_eq!(health.max, Some(4.0));
        assert!(!health.has_nan && !health.has_inf);
    }

    #[test]
    fn a_row_that_is_not_finite_is_noticed() {
        let infinite = health(&[[1.0, f32::INFINITY], [0.0, 0.0]]);
        assert!(infinite.has_inf && !infinite.has_nan);
        let undefined = health(&[[1.0, 0.0], [f32::NAN, 0.0]]);
        assert!(undefined.has_nan && !undefined.has_inf);
        assert_eq!(undefined.rms, None);
    }
}
