//! Health of recurrent states: saturation and divergence show here before they show in losses.

use tch::{Kind, Tensor};

use crate::controller::RecurrentState;
use crate::telemetry::{Num, RecurrentHealth};
use crate::torch::NoGrad;

/// Numbers of [`state_numbers`] per state tensor (of an LSTM: hidden, then cell): root mean square over all elements; mean
/// and largest root mean square of a sequence; largest magnitude; any NaN; any infinity.
pub(super) const STATE_NUMBERS: usize = 6;
const RMS: usize = 0;
const ROW_RMS_MEAN: usize = 1;
const ROW_RMS_MAX: usize = 2;
const MAX: usize = 3;
const ANY_NAN: usize = 4;
const ANY_INFINITE: usize = 5;

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

/// One f64 vector of [`STATE_NUMBERS`] from the [`row_numbers`] of a state tensor.
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

/// Magnitudes after an update's sequences and at the ends of its rollout's segments, by state tensor: the hidden state
/// first, then the cell of cores that have one.
pub(super) fn recurrent_health(update: &[[f64; STATE_NUMBERS]], rollout: &[[f64; STATE_NUMBERS]]) -> RecurrentHealth {
    let finite = |states: &[[f64; STATE_NUMBERS]], tensor: usize, number: usize| {
        let value = states.get(tensor)?[number];
        value.is_finite().then_some(Num(value))
    };
    let [h, c] = [0, 1];
    RecurrentHealth {
        update_h_rms: finite(update, h, RMS),
        update_c_rms: finite(update, c, RMS),
        update_h_env_rms_mean: finite(update, h, ROW_RMS_MEAN),
        update_h_env_rms_max: finite(update, h, ROW_RMS_MAX),
        update_c_env_rms_mean: finite(update, c, ROW_RMS_MEAN),
        update_c_env_rms_max: finite(update, c, ROW_RMS_MAX),
        update_h_max: finite(update, h, MAX),
        update_c_max: finite(update, c, MAX),
        rollout_h_rms: finite(rollout, h, RMS),
        rollout_c_rms: finite(rollout, c, RMS),
        rollout_h_env_rms_mean: finite(rollout, h, ROW_RMS_MEAN),
        rollout_h_env_rms_max: finite(rollout, h, ROW_RMS_MAX),
        rollout_c_env_rms_mean: finite(rollout, c, ROW_RMS_MEAN),
        rollout_c_env_rms_max: finite(rollout, c, ROW_RMS_MAX),
        rollout_h_max: finite(rollout, h, MAX),
        rollout_c_max: finite(rollout, c, MAX),
    }
}

/// `None` without recurrent states.
pub(super) fn any_nan(states: &[[f64; STATE_NUMBERS]]) -> Option<bool> {
    (!states.is_empty()).then(|| states.iter().any(|numbers| numbers[ANY_NAN] > 0.0))
}

/// `None` without recurrent states.
pub(super) fn any_infinite(states: &[[f64; STATE_NUMBERS]]) -> Option<bool> {
    (!states.is_empty()).then(|| states.iter().any(|numbers| numbers[ANY_INFINITE] > 0.0))
}

#[cfg(test)]
mod tests;
