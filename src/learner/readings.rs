//! What each minibatch measures: scalars and per-head vectors that stay on the device until the update's one read.

use tch::{Device, Kind, Tensor};

use crate::controller::HEADS;
use crate::torch::{HostSyncCounter, TorchError, catch, read_f64};

/// An enum whose members index an array of measurements.
macro_rules! measurements {
    ($(#[$doc:meta])* $name:ident { $($member:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name { $($member,)* }

        impl $name {
            const COUNT: usize = [$(Self::$member,)*].len();
        }
    };
}

measurements! {
    /// One number a minibatch.
    Scalar {
        LossTotal,
        LossPolicy,
        LossValue,
        LossEntropy,
        LossContribution,
        EntropyFloorPenalty,
        Kl,
        ClipPositive,
        ClipNegative,
        RatioMean,
        RatioSquare,
        RatioMax,
        RatioMin,
        DriftMean,
        DriftMax,
        LogProbMin,
        LogProbMax,
        ValueMean,
        ValueSquare,
        ValueMin,
        ValueMax,
        GradNorm,
        GradNormAuxiliary,
        ValueGradSquares,
        // Flags, 0 or 1.
        KlStop,
        Mismatch,
        BadValue,
        BadContribution,
        BadLoss,
        BadGradient,
        // No step was taken.
        Suppressed,
        // Sums over measured contributions.
        ContributionCount,
        PredictionSum,
        PredictionSquares,
        TargetSum,
        TargetSquares,
        ProductSum,
    }
}

measurements! {
    /// One number a head and minibatch.
    PerHead {
        Kl,
        Clipped,
        RatioMax,
        Entropy,
        EntropyAvailable,
        Causal,
        Available,
        BadLogProb,
        GradSquares,
        GradTensors,
    }
}

const WIDTH: usize = Scalar::COUNT + PerHead::COUNT * HEADS;

/// Measurements of one minibatch on the device.
#[derive(Debug)]
pub(super) struct DeviceReading {
    scalars: Vec<Option<Tensor>>,
    heads: Vec<Option<Tensor>>,
    device: Device,
}

impl DeviceReading {
    pub fn new(device: Device) -> Self {
        Self {
            scalars: (0..Scalar::COUNT).map(|_| None).collect(),
            heads: (0..PerHead::COUNT).map(|_| None).collect(),
            device,
        }
    }

    /// `value` is a single number of any kind.
    pub fn set(&mut self, scalar: Scalar, value: &Tensor) {
        self.scalars[scalar as usize] = Some(value.detach().reshape([1]).to_kind(Kind::Double));
    }

    /// `values` is one number per head, of any kind.
    pub fn set_heads(&mut self, per_head: PerHead, values: &Tensor) {
        self.heads[per_head as usize] = Some(values.detach().reshape([HEADS as i64]).to_kind(Kind::Double));
    }

    /// One vector; NaN where nothing was set.
    pub fn pack(self) -> Tensor {
        let unknown = |n: usize| Tensor::full([n as i64], f64::NAN, (Kind::Double, self.device));
        let scalars = self
            .scalars
            .into_iter()
            .map(|value| value.unwrap_or_else(|| unknown(1)));
        let heads = self
            .heads
            .into_iter()
            .map(|values| values.unwrap_or_else(|| unknown(HEADS)));
        let parts: Vec<Tensor> = scalars.chain(heads).collect();
        Tensor::cat(&parts, 0)
    }
}

/// Measurements of one minibatch on the host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading(Vec<f64>);

impl Reading {
    pub fn get(&self, scalar: Scalar) -> f64 {
        self.0[scalar as usize]
    }

    pub fn is_set(&self, flag: Scalar) -> bool {
        self.get(flag) > 0.0
    }

    pub fn head(&self, per_head: PerHead, head: usize) -> f64 {
        self.0[Scalar::COUNT + per_head as usize * HEADS + head]
    }
}

/// Reads all minibatches of an update, and whatever stands behind them, at once.
pub(super) fn read_all(
    readings: &[Tensor],
    rest: &[Tensor],
    reads: &HostSyncCounter,
) -> Result<(Vec<Reading>, Vec<f64>), TorchError> {
    let packed = catch(|| {
        let flat = readings
            .iter()
            .chain(rest)
            .map(|tensor| tensor.reshape([-1]).to_kind(Kind::Double));
        Tensor::cat(&flat.collect::<Vec<_>>(), 0)
    })?;
    let mut values = read_f64(&packed, reads)?;
    let rest = values.split_off(readings.len() * WIDTH);
    Ok((values.chunks(WIDTH).map(|row| Reading(row.to_vec())).collect(), rest))
}
