//! What a policy network is to the controller.

use tch::{Device, Tensor};

use super::layout::LogitLayout;
use super::parameters::PolicyParams;
use super::trainable::{RecurrentState, ValueOutput, ValueSequence};
use crate::scenario::NetConfig;

/// What a network is built for.
#[derive(Clone, Debug, PartialEq)]
pub struct NetSpec {
    /// The name that `policy.net` gives.
    pub kind: String,
    /// Elements of an observation, D.
    pub observation: usize,
    /// Slots, S.
    pub slots: usize,
    /// Blueprints of the registry, NB.
    pub blueprints: usize,
    /// Sizes of the layers and which optional parts there are.
    pub config: NetConfig,
}

impl NetSpec {
    /// Where the logits of each head lie.
    pub fn layout(&self) -> LogitLayout {
        LogitLayout::new(self.config.head_conditioning, self.slots, self.blueprints)
    }
}

/// One step of several envs.
#[derive(Debug)]
pub struct PolicyInput {
    /// `f32 [N, D]`, normalised.
    pub observations: Tensor,
    /// `i64 [N, S]`: blueprint of each slot, -1 = empty.
    pub blueprints: Tensor,
}

/// What a network makes of one step of `N` envs.
#[derive(Debug)]
pub struct StepOutput {
    /// `[N, A]`, laid out as [`LogitLayout`] says.
    pub logits: Tensor,
    /// `[N]`, in normalised units.
    pub value: Tensor,
    /// State after the step.
    pub state: RecurrentState,
}

/// Padded sequences of steps.
#[derive(Debug)]
pub struct NetSequence<'a> {
    /// `f32 [B, T, D]`, normalised.
    pub observations: &'a Tensor,
    /// `i64 [B, T, S]`.
    pub blueprints: &'a Tensor,
    /// Steps of each row that are no padding, at least 1.
    pub lengths: &'a [i64],
    /// State that enters step 0 of each row.
    pub initial: &'a RecurrentState,
    /// Whether the contribution head's gradient reaches the rest of the network.
    pub contributions_train_core: bool,
}

/// What a network makes of padded sequences.
#[derive(Debug)]
pub struct SequenceOutput {
    /// `[B, T, A]`; anything finite in padded steps.
    pub logits: Tensor,
    /// `[B, T]`.
    pub value: Tensor,
    /// `[B, T, S]`, percentage points.
    pub contributions: Option<Tensor>,
    /// After the last step of each row that is no padding.
    pub state: RecurrentState,
}

/// A network with a policy and a value: all that differs between architectures.
///
/// Rows do not influence each other, and `sequence` agrees with `step` taken one after another. Methods panic where
/// libtorch fails, as tch's do: the controller catches that and reports it with its place.
pub trait ActorCritic: Send {
    /// What it was built for.
    fn spec(&self) -> &NetSpec;

    /// Every trainable tensor once.
    fn params(&self) -> &PolicyParams;

    /// Handles to the last layer of the value head.
    fn value_output(&self) -> ValueOutput;

    /// State at the start of an episode; a network without memory has none.
    fn zero_state(&self, _rows: i64) -> RecurrentState {
        RecurrentState::default()
    }

    /// How many tensors at the end of the state only the value reads; 0 unless it has a core of its own.
    fn critic_states(&self) -> usize {
        0
    }

    /// `[B, T]`: the values of whole sequences as [`sequence`](Self::sequence) has them; anything finite in padded steps. Of
    /// its gradient only that of the critic's own parameters is used: a network that can spare the others computes them
    /// without.
    fn values(&self, input: &ValueSequence) -> Tensor {
        let sequence = NetSequence {
            observations: input.observations,
            blueprints: input.blueprints,
            lengths: input.lengths,
            initial: input.initial,
            contributions_train_core: false,
        };
        self.sequence(&sequence).value
    }

    /// One step of `N` envs; row i of `state` belongs to row i of the input. Sequences of one step unless the network
    /// has a shorter way.
    fn step(&self, input: &PolicyInput, state: &RecurrentState) -> StepOutput {
        let output = self.sequence(&NetSequence {
            observations: &input.observations.unsqueeze(1),
            blueprints: &input.blueprints.unsqueeze(1),
            lengths: &vec![1; input.observations.size()[0] as usize],
            initial: state,
            contributions_train_core: false,
        });
        StepOutput {
            logits: output.logits.squeeze_dim(1),
            value: output.value.squeeze_dim(1),
            state: output.state,
        }
    }

    /// Whole sequences, each from its row of the initial state.
    fn sequence(&self, input: &NetSequence) -> SequenceOutput;
}

/// Where and from what random numbers a network is built.
#[derive(Clone, Debug)]
pub struct NetContext {
    /// Kind and sizes of the network.
    pub spec: NetSpec,
    /// Where its tensors live.
    pub device: Device,
    /// `run.seed`.
    pub seed: u64,
}

impl NetContext {
    /// No parameters yet, on the device of the run, from the policy's own random stream.
    pub fn params(&self) -> PolicyParams {
        PolicyParams::new(self.device, self.seed)
    }
}
