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

/// One f64 vector per state tensor, on its device, for [`StateHealth::from_numbers`].
pub(super) fn state_numbers(state: &RecurrentState) -> Vec<Tensor> {
    let _no_grad = NoGrad::new();
    let numbers = |tensor: &Tensor| {
        let tensor = tensor.detach().to_kind(Kind::Double);
        let by_env = tensor
            .square()
            .mean_dim([0i64, 2].as_slice(), false, Kind::Double)
            .sqrt();
        let parts = [
            tensor.square().mean(Kind::Double).sqrt(),
            by_env.mean(Kind::Double),
            by_env.max(),
            tensor.abs().max(),
            tensor.isnan().any().to_kind(Kind::Double),
            tensor.isinf().any().to_kind(Kind::Double),
        ];
        Tensor::stack(&parts, 0)
    };
    state.0.iter().map(numbers).collect()
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
