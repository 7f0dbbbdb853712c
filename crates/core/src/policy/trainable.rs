//! A learner's interface to a policy - stored actions evaluated again, with a gradient - and a network's trainable tensors.
//!
//! Their values are drawn on the CPU from the engine's own generator, so a policy starts equal on every device, independent of
//! other draws in the process. Tensors keep their storage for the whole run: loading and learning write in place.

use tch::{Device, Kind, TchError, Tensor};

use crate::actions::PolicyError;
use crate::nn::{Linear, ParamSet};
use crate::random::{Domain, RunRng};
use crate::scenario::Kernels;
use crate::torch::{Backend, TorchError};

/// Recurrent state of several rows; a policy without memory has no tensors.
#[derive(Debug, Default)]
pub struct RecurrentState(
    /// Each `[layers, rows, width]`, f32, on the policy's device: of an LSTM h, then c.
    pub Vec<Tensor>,
);

/// Padded sequences of stored steps: `B` segments of up to `T` steps, each from the state at the start of an episode.
///
/// Padded steps are benign: their masks allow exactly the placeholder of each head, and that is their action.
#[derive(Debug)]
pub struct SequenceInput<'a> {
    /// `[B, T, D]`, f32, on the policy's device; normalised: exactly what the policy saw.
    pub observations: &'a Tensor,
    /// Blueprint of each slot, -1 where it is empty: `[B, T, S]`, i64, on the policy's device.
    pub blueprints: &'a Tensor,
    /// Choice of each head, in the order of `Head::ALL`: `[B, T, 8]`, i64, on the policy's device.
    pub actions: &'a Tensor,
    /// The stored masks, as [`MaskSet::write_row`](crate::actions::MaskSet::write_row) lays them out: `[B, T, W]`, bool, on the
    /// policy's device.
    pub masks: &'a Tensor,
    /// True where a step isn't padding: `[B, T]`, bool, on the policy's device.
    pub valid: &'a Tensor,
    /// Steps of each sequence that aren't padding, on the host: `[B]`.
    pub lengths: &'a [i64],
}

/// Gathers the observations of such sequences as they were measured: `[B, T, D]`, f32, on the policy's device.
pub type RawObservations<'a> = &'a dyn Fn() -> Result<Tensor, TorchError>;

/// Stored actions under the policy's current weights. f32 throughout, differentiable; irrelevant heads hold exactly 0.
#[derive(Debug)]
pub struct Evaluation {
    /// Log-probability of the stored choice of each head, in nats: `[B, T, 8]`, f32, on the policy's device.
    pub log_probs: Tensor,
    /// Output of the value head, in normalised units: `[B, T]`, f32, on the policy's device.
    pub value: Tensor,
    /// Entropy of the chosen branch over ln(legal choices), 0 to 1: `[B, T, 8]`, f32, on the policy's device.
    pub entropy_causal: Tensor,
    /// Mean entropy over the branches that were open, 0 to 1: `[B, T, 8]`, f32, on the policy's device.
    pub entropy_available: Tensor,
    /// State after the last valid step of each sequence, without gradient.
    pub final_state: RecurrentState,
}

/// The part of a policy that a parameter belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParamGroup {
    /// Layers of the action heads, which end in the logits.
    ActorHeads,
    /// Layers that all heads read: embedding, feature layers and core.
    Shared,
    /// Layers of the value head.
    Critic,
}

/// A trainable tensor by its stable name.
#[derive(Debug)]
pub struct PolicyParam {
    /// Unique in the policy, e.g. `emb.weight`; saved files use it too.
    pub name: String,
    /// Any shape, f32, on the policy's device, with gradient; shares its storage with the policy.
    pub tensor: Tensor,
    /// The part of the policy it belongs to.
    pub group: ParamGroup,
}

/// A policy that a learner can improve. Handles stay valid for the whole run: weights only change in place.
pub trait TrainablePolicy {
    /// Every trainable tensor once, in a fixed order.
    fn params(&self) -> Vec<PolicyParam>;

    /// Handles to the last layer of the value head, which value normalisation rewrites in place.
    fn value_output(&self) -> Linear;

    /// The policy's number format under autocast, whether it acts or is evaluated; `None`: f32 throughout.
    fn precision(&self) -> Option<Kind> {
        None
    }

    /// # Errors
    /// A device error.
    fn evaluate(&self, input: &SequenceInput) -> Result<Evaluation, PolicyError>;

    /// Log-probabilities of the stored choices under the policy that this one is held to, in nats: `[B, T, 8]`, f32, on the policy's
    /// device, without gradient; `None` if it is held to no other.
    ///
    /// # Errors
    /// Those of [`evaluate`](Self::evaluate).
    fn teacher_log_probs(&self, _raw: RawObservations, _input: &SequenceInput) -> Result<Option<Tensor>, PolicyError> {
        Ok(None)
    }

    /// Sets the factor of the probability floors, in [0, 1]; it may change between rollouts only.
    fn set_floor_scale(&mut self, scale: f64);
}

/// All trainable tensors of a network, in a fixed order, and the seed that their values come from.
#[derive(Debug)]
pub struct PolicyParams {
    set: ParamSet,
    /// The beginning of each part: the index of its first parameter.
    parts: Vec<(usize, ParamGroup)>,
    seed: u64,
}

impl PolicyParams {
    /// `seed`: the run's.
    pub fn new(device: Device, seed: u64) -> Self {
        Self {
            set: ParamSet::new(Backend::new(device, Kernels::Libtorch)),
            parts: Vec::new(),
            seed,
        }
    }

    /// The set to which the parameters of a part are added.
    pub fn of(&mut self, group: ParamGroup) -> &mut ParamSet {
        self.parts.push((self.set.trainable().len(), group));
        &mut self.set
    }

    /// Draws all values: once the network is built, before it computes anything.
    ///
    /// # Errors
    /// libtorch's, if there is not enough memory.
    pub fn initialise(&mut self) -> Result<(), TchError> {
        self.set
            .initialise(&mut RunRng::new(self.seed, Domain::PolicyInit, &[0]))
    }

    /// The device of the tensors.
    pub fn device(&self) -> Device {
        self.set.device()
    }

    /// Further handles, in construction order.
    pub fn iter(&self) -> impl Iterator<Item = PolicyParam> {
        let part = |index: usize| self.parts.iter().rfind(|(first, _)| *first <= index);
        self.set
            .trainable()
            .iter()
            .enumerate()
            .filter_map(move |(index, param)| {
                Some(PolicyParam {
                    name: param.name.clone(),
                    tensor: param.tensor.shallow_clone(),
                    group: part(index)?.1,
                })
            })
    }

    /// Number of trainable values.
    pub fn count(&self) -> u64 {
        self.set.count()
    }
}
