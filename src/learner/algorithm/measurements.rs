//! What is measured of each minibatch: scalars and vectors by head that stay on the device until the update's one read.

use std::time::Duration;

use tch::{Device, Kind, Tensor};

use super::loss::{Losses, Ratios, count_by_head, drift, kl_terms, mean, mean_by_head, selected};
use super::optimizer::Gradients;
use super::recurrent::{STATE_NUMBERS, row_numbers, state_numbers};
use super::sequences::SequenceBatch;
use crate::controller::{Evaluation, HEADS};
use crate::torch::{HostSyncCounter, NoGrad, TorchError, catch, read_f64};

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

/// What of a minibatch is not finite: f32 tensors, 0 where all is well.
#[derive(Debug)]
pub(super) struct Gates {
    /// `[K]`, gate G1: log-probabilities that matter.
    log_probs: Tensor,
    /// G1.
    value: Tensor,
    /// G2.
    loss: Tensor,
    /// G3.
    gradient: Tensor,
}

impl Gates {
    pub fn check(evaluation: &Evaluation, minibatch: &SequenceBatch, losses: &Losses, gradients: &Gradients) -> Self {
        let log_probs = selected(&evaluation.log_probs.detach(), &minibatch.causal);
        Self {
            log_probs: count_by_head(&log_probs.isfinite().logical_not()),
            value: is_not_finite(&selected(&evaluation.value.detach(), &minibatch.valid)),
            loss: is_not_finite(&losses.total),
            gradient: gradients.bad.shallow_clone(),
        }
    }

    /// f32 scalar, 1 if any gate is closed.
    pub fn any(&self) -> Tensor {
        let log_probs = self.log_probs.gt(0.0).any().to_kind(Kind::Float);
        let gates = [&self.value, &self.loss, &self.gradient];
        gates.into_iter().fold(log_probs, |any, gate| any.maximum(gate))
    }
}

/// f32 scalar, 1 if any element is NaN or infinite.
fn is_not_finite(values: &Tensor) -> Tensor {
    values.detach().isfinite().logical_not().any().to_kind(Kind::Float)
}

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
    /// No parameter had moved when it was evaluated.
    pub is_first: bool,
}

/// Measurements of one minibatch on the device.
#[derive(Debug)]
pub(super) struct MinibatchNumbers {
    /// f64, all scalars, then all vectors by head.
    packed: Tensor,
    /// Numbers of the states after the minibatch's sequences, by state tensor.
    states: Vec<Tensor>,
}

/// Measures a step that has been taken or suppressed.
pub(super) fn measure(step: &MinibatchStep) -> MinibatchNumbers {
    let _no_grad = NoGrad::new();
    let mut numbers = DeviceNumbers::new(step.minibatch.device());
    measure_losses(step, &mut numbers);
    measure_trust_region(step, &mut numbers);
    measure_entropy(step, &mut numbers);
    measure_values(step, &mut numbers);
    measure_gradients(step, &mut numbers);
    let states = row_numbers(&step.evaluation.final_state);
    MinibatchNumbers {
        packed: numbers.pack(),
        states: states.iter().map(state_numbers).collect(),
    }
}

fn measure_losses(step: &MinibatchStep, numbers: &mut DeviceNumbers) {
    numbers.set(Scalar::LossTotal, &step.losses.total);
    numbers.set(Scalar::LossPolicy, &step.losses.policy);
    numbers.set(Scalar::LossValue, &step.losses.value);
    numbers.set(Scalar::LossEntropy, &step.losses.entropy);
    numbers.set(Scalar::EntropyFloorPenalty, &step.losses.floor_penalty);
    numbers.set(Scalar::KlStop, step.kl_stop);
    numbers.set(Scalar::Mismatch, step.mismatch);
    numbers.set_heads(PerHead::BadLogProb, &step.gates.log_probs);
    numbers.set(Scalar::BadValue, &step.gates.value);
    numbers.set(Scalar::BadLoss, &step.gates.loss);
    numbers.set(Scalar::BadGradient, &step.gates.gradient);
    numbers.set(Scalar::Suppressed, step.suppressed);
    if let Some(scale) = step.loss_scale {
        numbers.set(Scalar::LossScale, scale);
    }
}

fn measure_trust_region(step: &MinibatchStep, numbers: &mut DeviceNumbers) {
    let SequenceBatch { actor, causal, .. } = step.minibatch;
    let (joint, heads) = (step.ratios.joint.detach(), step.ratios.heads.detach());
    let clip = step.clip_ratio;
    let share = |condition: Tensor| mean(&condition.to_kind(Kind::Float), actor);
    numbers.set(Scalar::Kl, step.kl);
    numbers.set(Scalar::ClipPositive, &share(joint.gt(1.0 + clip)));
    numbers.set(Scalar::ClipNegative, &share(joint.lt(1.0 - clip)));
    numbers.set(Scalar::RatioMean, &mean(&joint, actor));
    numbers.set(Scalar::RatioSquare, &mean(&joint.square(), actor));
    // Excluded steps have ratio 1 by construction: they widen neither end.
    numbers.set(Scalar::RatioMax, &joint.max());
    numbers.set(Scalar::RatioMin, &joint.min());
    let head_kl = kl_terms(&heads, &step.ratios.head_logs.detach());
    let clipped = (&heads - 1.0).abs().gt(clip).to_kind(Kind::Float);
    numbers.set_heads(PerHead::Kl, &mean_by_head(&head_kl, causal));
    numbers.set_heads(PerHead::Clipped, &mean_by_head(&clipped, causal));
    numbers.set_heads(PerHead::RatioMax, &heads.amax([0i64, 1].as_slice(), false));
    numbers.set_heads(PerHead::Causal, &count_by_head(causal));
    numbers.set_heads(PerHead::Available, &count_by_head(&step.minibatch.available));
    if step.is_first {
        let differences = drift(&step.evaluation.log_probs, &step.minibatch.old_log_probs);
        numbers.set(Scalar::DriftMean, &mean(&differences, causal));
        numbers.set(Scalar::DriftMax, &selected(&differences, causal).max());
    }
}

fn measure_entropy(step: &MinibatchStep, numbers: &mut DeviceNumbers) {
    let SequenceBatch { causal, available, .. } = step.minibatch;
    let causal_entropy = mean_by_head(&step.evaluation.entropy_causal.detach(), causal);
    numbers.set_heads(PerHead::Entropy, &causal_entropy);
    let open_entropy = mean_by_head(&step.evaluation.entropy_available.detach(), available);
    numbers.set_heads(PerHead::EntropyAvailable, &open_entropy);
    let (least, most) = range(&step.evaluation.log_probs, causal);
    numbers.set(Scalar::LogProbMin, &least);
    numbers.set(Scalar::LogProbMax, &most);
}

fn measure_values(step: &MinibatchStep, numbers: &mut DeviceNumbers) {
    let valid = &step.minibatch.valid;
    let values = step.evaluation.value.detach();
    let (least, most) = range(&values, valid);
    numbers.set(Scalar::ValueMean, &mean(&values, valid));
    numbers.set(Scalar::ValueSquare, &mean(&values.square(), valid));
    numbers.set(Scalar::ValueMin, &least);
    numbers.set(Scalar::ValueMax, &most);
}

/// Smallest and largest of what the mask selects.
fn range(values: &Tensor, mask: &Tensor) -> (Tensor, Tensor) {
    let (values, excluded) = (values.detach(), mask.logical_not());
    let least = values.masked_fill(&excluded, f64::INFINITY).min();
    (least, values.masked_fill(&excluded, f64::NEG_INFINITY).max())
}

fn measure_gradients(step: &MinibatchStep, numbers: &mut DeviceNumbers) {
    let gradients = step.gradients;
    numbers.set_heads(PerHead::GradSquares, &gradients.head_squares);
    numbers.set_heads(PerHead::GradTensors, &gradients.head_tensors);
    numbers.set(Scalar::ValueGradSquares, &gradients.value_squares);
    numbers.set(Scalar::GradNorm, &gradients.norm);
}

/// `[3]`: shares of the normalised observations' elements beyond 3, 0.9 clip and clip.
pub(super) fn observation_shares(batch: &SequenceBatch, clip: f64) -> Tensor {
    let _no_grad = NoGrad::new();
    let size = batch.observations.abs();
    let valid = batch.valid.unsqueeze(-1).expand_as(&size);
    let beyond = [size.gt(3.0), size.ge(0.9 * clip), size.ge(clip)];
    Tensor::stack(&beyond.map(|beyond| mean(&beyond.to_kind(Kind::Float), &valid)), 0)
}

/// `[2]`: elements of the raw observations that are NaN, and that are infinite.
pub(super) fn observation_faults(raw: &Tensor) -> Tensor {
    Tensor::stack(&[raw.isnan(), raw.isinf()].map(|is| is.sum(Kind::Double)), 0)
}

/// Numbers by measurement, while they are gathered: all scalars, then all vectors by head.
struct DeviceNumbers {
    values: Vec<Option<Tensor>>,
    device: Device,
}

impl DeviceNumbers {
    fn new(device: Device) -> Self {
        let values = (0..Scalar::COUNT + PerHead::COUNT).map(|_| None).collect();
        Self { values, device }
    }

    /// `value` is a single number of any kind.
    fn set(&mut self, scalar: Scalar, value: &Tensor) {
        self.values[scalar as usize] = Some(value.detach().reshape([1]).to_kind(Kind::Double));
    }

    /// `values` is one number per head, of any kind.
    fn set_heads(&mut self, per_head: PerHead, values: &Tensor) {
        let values = values.detach().reshape([HEADS as i64]).to_kind(Kind::Double);
        self.values[Scalar::COUNT + per_head as usize] = Some(values);
    }

    /// One vector; NaN where nothing was set.
    fn pack(self) -> Tensor {
        let width = |index| if index < Scalar::COUNT { 1 } else { HEADS as i64 };
        let unknown = |index| Tensor::full([width(index)], f64::NAN, (Kind::Double, self.device));
        let values = self.values.into_iter().enumerate();
        let parts: Vec<Tensor> = values
            .map(|(index, value)| value.unwrap_or_else(|| unknown(index)))
            .collect();
        Tensor::cat(&parts, 0)
    }
}

/// A minibatch of an update, still on the device.
pub(super) struct TimedStep {
    pub epoch: u32,
    pub minibatch: u32,
    pub numbers: MinibatchNumbers,
    /// From its selection to its last measurement as the host sees it. A CUDA device may still be at work when a step
    /// ends: nothing waits for it.
    pub elapsed: Duration,
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
        self.values[Scalar::COUNT + per_head as usize * HEADS + head]
    }
}

/// All that was measured in an update.
#[derive(Debug)]
pub(super) struct UpdateMeasurements {
    /// By minibatch, in order.
    pub readings: Vec<Reading>,
    /// By minibatch.
    pub step_us: Vec<f64>,
    /// By state tensor of the last minibatch's final states.
    pub states: Vec<[f64; STATE_NUMBERS]>,
    /// By state tensor of the states with which the rollout's segments ended.
    pub rollout_states: Vec<[f64; STATE_NUMBERS]>,
    /// Squared norms of the parameters and of their change.
    pub parameter_squares: f64,
    pub change_squares: f64,
    /// Of normalised observations: shares beyond 3, 0.9 clip and clip.
    pub observation_shares: [f64; 3],
    /// Of raw observations: elements that are NaN and that are infinite.
    pub observation_faults: [f64; 2],
}

impl UpdateMeasurements {
    /// The parameters are not finite any more (gate G4): they are to be restored.
    pub fn are_parameters_spoilt(&self) -> bool {
        !(self.parameter_squares.is_finite() && self.change_squares.is_finite())
    }
}

/// Reads all minibatches of an update, and what was measured of the whole of it, at once. `change` is that of
/// [`PolicyOptimizer::change`](super::optimizer::PolicyOptimizer::change), `observations` their shares and faults.
pub(super) fn read_all(
    steps: &[TimedStep],
    change: &Tensor,
    observations: &[Tensor; 2],
    rollout_states: &[Tensor],
    reads: &HostSyncCounter,
) -> Result<UpdateMeasurements, TorchError> {
    let states = steps.last().map_or(&[][..], |step| &step.numbers.states);
    let packed = catch(|| {
        let readings = steps.iter().map(|step| &step.numbers.packed);
        let rest = [change]
            .into_iter()
            .chain(observations)
            .chain(states)
            .chain(rollout_states);
        let flat = readings
            .chain(rest)
            .map(|tensor| tensor.reshape([-1]).to_kind(Kind::Double));
        Tensor::cat(&flat.collect::<Vec<_>>(), 0)
    })?;
    let values = read_f64(&packed, reads)?;
    let (readings, rest) = values.split_at(steps.len() * WIDTH);
    let (of_states, of_rollout) = rest[7..].as_chunks::<STATE_NUMBERS>().0.split_at(states.len());
    let reading = |(step, values): (&TimedStep, &[f64])| Reading {
        epoch: step.epoch,
        minibatch: step.minibatch,
        values: values.to_vec(),
    };
    Ok(UpdateMeasurements {
        readings: steps.iter().zip(readings.chunks(WIDTH)).map(reading).collect(),
        step_us: steps.iter().map(|step| step.elapsed.as_secs_f64() * 1e6).collect(),
        states: of_states.to_vec(),
        rollout_states: of_rollout.to_vec(),
        parameter_squares: rest[0],
        change_squares: rest[1],
        observation_shares: [rest[2], rest[3], rest[4]],
        observation_faults: [rest[5], rest[6]],
    })
}
