//! What is measured of each minibatch: scalars and vectors by head that stay on the device until the update's one read.

use tch::{Kind, Tensor};

use super::loss::{Gates, Losses, Ratios, count_by_head, drift, mean, mean_by_head};
use super::optimizer::Gradients;
use super::sequences::SequenceBatch;
use crate::actions::HEADS;
use crate::policy::Evaluation;
use crate::telemetry::Fallbacks;
use crate::torch::{HostSyncCounter, NoGrad, TorchError, catch, read_f64};

/// An enum whose members index an array of measurements.
macro_rules! measurements {
    ($(#[$doc:meta])* $name:ident { $($member:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name { $($member,)* }

        impl $name {
            const ALL: &[Self] = &[$(Self::$member,)*];
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
        EntropyFloorPenalty,
        // Not a number without a teacher.
        TeacherKl,
        Kl,
        Clipped,
        RatioMax,
        RatioMin,
        Drift,
        GradNorm,
        ValueGradSquares,
        // Not a number where the loss is not scaled.
        LossScale,
        // Flags, 0 or 1.
        KlStop,
        Mismatch,
        BadValue,
        BadLoss,
        BadGradient,
        // No step was taken.
        Suppressed,
    }
}

measurements! {
    /// One number a head and minibatch.
    PerHead {
        EntropyAvailable,
        Available,
        BadLogProb,
        GradSquares,
    }
}

const WIDTH: usize = Scalar::ALL.len() + PerHead::ALL.len() * HEADS;

/// All that came up in the step of one minibatch.
pub(super) struct MinibatchStep<'a> {
    pub minibatch: &'a SequenceBatch,
    pub evaluation: &'a Evaluation,
    pub ratios: &'a Ratios,
    pub clip_ratio: f64,
    /// Joint divergence from the policy that acted.
    pub kl: &'a Tensor,
    pub losses: &'a Losses,
    pub gradients: &'a Gradients,
    pub gates: &'a Gates,
    /// What the loss was scaled by.
    pub loss_scale: Option<&'a Tensor>,
    pub kl_stop: &'a Tensor,
    pub mismatch: &'a Tensor,
    pub suppressed: &'a Tensor,
}

/// Measurements of one minibatch on the device.
#[derive(Debug)]
pub(super) struct MinibatchNumbers {
    /// f64, all scalars, then all vectors by head.
    packed: Tensor,
}

impl MinibatchNumbers {
    /// The same where no later step writes.
    pub fn kept(&self) -> Self {
        Self {
            packed: self.packed.copy(),
        }
    }
}

impl MinibatchStep<'_> {
    /// Measures the step after it has been taken or suppressed.
    pub fn measure(&self) -> MinibatchNumbers {
        let _no_grad = NoGrad::new();
        let scalars = Scalar::ALL.iter().map(|&scalar| self.scalar(scalar));
        let by_head = PerHead::ALL.iter().map(|&per_head| self.by_head(per_head));
        let numbers = scalars.chain(by_head);
        let flat = numbers.map(|tensor| tensor.detach().reshape([-1]).to_kind(Kind::Double));
        MinibatchNumbers {
            packed: Tensor::cat(&flat.collect::<Vec<_>>(), 0),
        }
    }

    fn scalar(&self, scalar: Scalar) -> Tensor {
        let SequenceBatch { actor, causal, .. } = self.minibatch;
        let joint = self.ratios.joint.detach();
        let unknown = || Tensor::full([1], f64::NAN, (Kind::Double, joint.device()));
        match scalar {
            Scalar::LossTotal => self.losses.total.shallow_clone(),
            Scalar::LossPolicy => self.losses.policy.shallow_clone(),
            Scalar::LossValue => self.losses.value.shallow_clone(),
            Scalar::LossEntropy => self.losses.entropy.shallow_clone(),
            Scalar::EntropyFloorPenalty => self.losses.floor_penalty.shallow_clone(),
            Scalar::TeacherKl => self.losses.teacher.as_ref().map_or_else(unknown, Tensor::shallow_clone),
            Scalar::Kl => self.kl.shallow_clone(),
            Scalar::Clipped => mean(&self.is_clipped(&joint), actor),
            // Excluded steps have ratio 1 by construction: they widen neither end.
            Scalar::RatioMax => joint.max(),
            Scalar::RatioMin => joint.min(),
            Scalar::Drift => mean(
                &drift(&self.evaluation.log_probs, &self.minibatch.old_log_probs),
                causal,
            ),
            Scalar::GradNorm => self.gradients.norm.shallow_clone(),
            Scalar::ValueGradSquares => self.gradients.value_squares.shallow_clone(),
            Scalar::LossScale => self.loss_scale.map_or_else(unknown, Tensor::shallow_clone),
            Scalar::KlStop => self.kl_stop.shallow_clone(),
            Scalar::Mismatch => self.mismatch.shallow_clone(),
            Scalar::BadValue => self.gates.value.shallow_clone(),
            Scalar::BadLoss => self.gates.loss.shallow_clone(),
            Scalar::BadGradient => self.gates.gradient.shallow_clone(),
            Scalar::Suppressed => self.suppressed.shallow_clone(),
        }
    }

    fn by_head(&self, per_head: PerHead) -> Tensor {
        let available = &self.minibatch.available;
        match per_head {
            PerHead::EntropyAvailable => mean_by_head(&self.evaluation.entropy_available.detach(), available),
            PerHead::Available => count_by_head(available),
            PerHead::BadLogProb => self.gates.log_probs.shallow_clone(),
            PerHead::GradSquares => self.gradients.head_squares.shallow_clone(),
        }
    }

    /// 1 where a ratio is beyond the clip, else 0.
    fn is_clipped(&self, ratios: &Tensor) -> Tensor {
        (ratios - 1.0).abs().gt(self.clip_ratio).to_kind(Kind::Float)
    }
}

/// A minibatch of an update, still on the device.
pub(super) struct MeasuredStep {
    pub epoch: u32,
    pub minibatch: u32,
    pub numbers: MinibatchNumbers,
}

/// A minibatch of an update on the host.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub epoch: u32,
    pub minibatch: u32,
    values: Vec<f64>,
}

impl Reading {
    pub fn get(&self, scalar: Scalar) -> f64 {
        self.values[scalar as usize]
    }

    pub fn is_set(&self, flag: Scalar) -> bool {
        self.get(flag) > 0.0
    }

    /// Scaled gradients that were not finite: answered with a smaller scale. Below 1 scaling is not to blame.
    pub fn has_overflowed(&self) -> bool {
        self.is_set(Scalar::BadGradient) && self.get(Scalar::LossScale) >= 1.0
    }

    pub fn head(&self, per_head: PerHead, head: usize) -> f64 {
        self.values[Scalar::ALL.len() + per_head as usize * HEADS + head]
    }
}

/// All that was measured in an update.
#[derive(Debug)]
pub(super) struct UpdateMeasurements {
    /// By minibatch, in order.
    pub readings: Vec<Reading>,
    /// Squared norms of the parameters and of their change.
    parameter_squares: [f64; 2],
    /// Of its minibatches.
    pub fallbacks: Fallbacks,
}

impl UpdateMeasurements {
    /// The parameters are not finite any more (gate G4): they are to be restored.
    pub fn are_parameters_spoilt(&self) -> bool {
        !self.parameter_squares.iter().all(|squares| squares.is_finite())
    }
}

/// Reads all minibatches of an update, and what was measured of the whole of it, at once. `change` is that of
/// [`PolicyOptimizer::change`](super::optimizer::PolicyOptimizer::change).
pub(super) fn read_all(
    steps: &[MeasuredStep],
    change: &Tensor,
    reads: &HostSyncCounter,
) -> Result<UpdateMeasurements, TorchError> {
    let packed = catch(|| {
        let parts = steps.iter().map(|step| &step.numbers.packed).chain([change]);
        let flat = parts.map(|tensor| tensor.reshape([-1]).to_kind(Kind::Double));
        Tensor::cat(&flat.collect::<Vec<_>>(), 0)
    })?;
    let values = read_f64(&packed, reads)?;
    let (readings, rest) = values.split_at(steps.len() * WIDTH);
    let reading = |(step, values): (&MeasuredStep, &[f64])| Reading {
        epoch: step.epoch,
        minibatch: step.minibatch,
        values: values.to_vec(),
    };
    Ok(UpdateMeasurements {
        readings: steps.iter().zip(readings.chunks(WIDTH)).map(reading).collect(),
        parameter_squares: [rest[0], rest[1]],
        fallbacks: Fallbacks::default(),
    })
}
