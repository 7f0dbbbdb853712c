//! What a learner needs of a policy: stored actions evaluated again, with a gradient.

use tch::{Kind, Tensor};

use crate::actions::PolicyError;
use crate::nn::Linear;

/// Recurrent state of several rows: tensors `[layers, rows, width]`; none for a policy without memory.
#[derive(Debug, Default)]
pub struct RecurrentState(pub Vec<Tensor>);

/// Padded sequences of stored steps: `B` segments or chunks of up to `T` steps.
///
/// Padded steps are benign: their masks allow exactly the placeholder of each head, and that is their action.
#[derive(Debug)]
pub struct SequenceInput<'a> {
    /// `f32 [B, T, D]`, normalised: exactly what the policy saw.
    pub observations: &'a Tensor,
    /// `i64 [B, T, S]`: blueprint of each slot, -1 = empty.
    pub blueprints: &'a Tensor,
    /// `i64 [B, T, 8]`, in the order of `Head::ALL`.
    pub actions: &'a Tensor,
    /// `bool [B, T, W]`, the stored masks as [`MaskSet::write_row`](crate::actions::MaskSet::write_row) lays them out.
    pub masks: &'a Tensor,
    /// `bool [B, T]`.
    pub valid: &'a Tensor,
    /// State that enters step 0 of each sequence.
    pub initial: &'a RecurrentState,
}

/// Stored actions under the policy's current weights. f32 throughout, differentiable; irrelevant heads hold exactly 0.
#[derive(Debug)]
pub struct Evaluation {
    /// `[B, T, 8]`: log-probability of the stored choice of each head.
    pub log_probs: Tensor,
    /// `[B, T]`: output of the value head, in normalised units.
    pub value: Tensor,
    /// `[B, T, 8]`: entropy of the chosen branch over ln(legal choices), in [0, 1].
    pub entropy_causal: Tensor,
    /// `[B, T, 8]`: mean entropy over the branches that were open, in [0, 1].
    pub entropy_available: Tensor,
    /// State after the last valid step of each sequence, without gradient.
    pub final_state: RecurrentState,
}

/// The part of a policy that a parameter belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParamGroup {
    /// Layers of the action heads, which end in the logits.
    ActorHeads,
    /// What all heads read: embedding, feature layers and core.
    Shared,
    /// Layers of the value head.
    Critic,
}

/// A trainable tensor by its stable name.
#[derive(Debug)]
pub struct PolicyParam {
    /// Unique in the policy, e.g. `emb.weight`; saved files use it too.
    pub name: String,
    /// f32, with gradient; shares its storage with the policy.
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

    /// What it computes in under autocast, whether it acts or is evaluated; `None`: f32 throughout.
    fn precision(&self) -> Option<Kind> {
        None
    }

    /// # Errors
    /// A stored action that its mask forbids, or a device error.
    fn evaluate(&self, input: &SequenceInput) -> Result<Evaluation, PolicyError>;

    /// Probability floors are scaled by this, in [0, 1]; it may change between rollouts only.
    fn set_floor_scale(&mut self, scale: f64);
}
