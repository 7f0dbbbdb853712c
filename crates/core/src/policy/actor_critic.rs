//! The controller's interface to a policy network, and its precision: the same when it acts, when it estimates a value and when
//! a learner evaluates its actions, so that probabilities of one and the same action are comparable.

use tch::{Device, Kind, TchError, Tensor};

use super::layout::LogitLayout;
use super::trainable::{PolicyParams, RecurrentState};
use crate::nn::Linear;
use crate::scenario::{AmpMode, NetConfig};
use crate::torch::{Autocast, TorchError, catch, mixed_kind};

/// Specification that a network is built for.
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
    /// The place of each head's logits.
    pub fn layout(&self) -> LogitLayout {
        LogitLayout::new(self.config.head_conditioning, self.slots, self.blueprints)
    }
}

/// One step of several envs.
#[derive(Debug)]
pub struct PolicyInput {
    /// `[N, D]`, f32, on the policy's device; normalised.
    pub observations: Tensor,
    /// Blueprint of each slot, -1 where it is empty: `[N, S]`, i64, on the policy's device.
    pub blueprints: Tensor,
}

/// Padded sequences of steps.
#[derive(Debug)]
pub struct NetSequence<'a> {
    /// `[B, T, D]`, f32, on the policy's device; normalised.
    pub observations: &'a Tensor,
    /// Blueprint of each slot, -1 where it is empty: `[B, T, S]`, i64, on the policy's device.
    pub blueprints: &'a Tensor,
    /// Steps of each row that aren't padding, at least 1.
    pub lengths: &'a [i64],
    /// State that enters step 0 of each row.
    pub initial: &'a RecurrentState,
}

/// Output of a network for one step of `N` envs, or for `B` padded sequences of `T` steps.
#[derive(Debug)]
pub struct NetOutput {
    /// `[N, A]` or `[B, T, A]`, f32 or the kind of autocast, on the policy's device; laid out like [`LogitLayout`]. Anything
    /// finite in padded steps.
    pub logits: Tensor,
    /// `[N]` or `[B, T]`, f32 or the kind of autocast, on the policy's device; in normalised units.
    pub value: Tensor,
    /// The state after the step, or after the last step of each row that isn't padding.
    pub state: RecurrentState,
}

/// A network with a policy and a value: all that differs between architectures.
///
/// Rows do not influence each other, and `sequence` agrees with `step` taken one after another. Where libtorch fails,
/// methods return its error or panic, as tch's do: the controller catches that and reports it with its place.
pub trait ActorCritic: Send {
    /// The specification that it was built for.
    fn spec(&self) -> &NetSpec;

    /// Every trainable tensor once.
    fn params(&self) -> &PolicyParams;

    /// Handles to the last layer of the value head.
    fn value_output(&self) -> Linear;

    /// State at the start of an episode; a network without memory has none.
    fn zero_state(&self, _rows: i64) -> RecurrentState {
        RecurrentState::default()
    }

    /// One step of `N` envs; row i of `state` belongs to row i of the input. Sequences of one step unless the network
    /// has a shorter way.
    ///
    /// # Errors
    /// libtorch's.
    fn step(&self, input: &PolicyInput, state: &RecurrentState) -> Result<NetOutput, TchError> {
        let output = self.sequence(&NetSequence {
            observations: &input.observations.unsqueeze(1),
            blueprints: &input.blueprints.unsqueeze(1),
            lengths: &vec![1; input.observations.size()[0] as usize],
            initial: state,
        })?;
        Ok(NetOutput {
            logits: output.logits.squeeze_dim(1),
            value: output.value.squeeze_dim(1),
            ..output
        })
    }

    /// Whole sequences, each from its row of the initial state.
    ///
    /// # Errors
    /// libtorch's.
    fn sequence(&self, input: &NetSequence) -> Result<NetOutput, TchError>;
}

/// The device and the random numbers of a network that is built.
#[derive(Clone, Debug)]
pub struct NetContext {
    /// Kind and sizes of the network.
    pub spec: NetSpec,
    /// The device of its tensors.
    pub device: Device,
    /// `run.seed`.
    pub seed: u64,
}

impl NetContext {
    /// An empty set of parameters on the device of the run, with the policy's own random stream.
    pub fn params(&self) -> PolicyParams {
        PolicyParams::new(self.device, self.seed)
    }
}

/// Number format of autocast, on the device of the network; every output of the network is f32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyPrecision {
    device: Device,
    kind: Option<Kind>,
}

impl PolicyPrecision {
    /// The precision of `learner.amp` on `device`.
    pub fn new(amp: AmpMode, device: Device) -> Self {
        Self {
            device,
            kind: mixed_kind("learner.amp", amp, device.is_cuda()),
        }
    }

    /// `None`: f32 throughout.
    pub const fn kind(self) -> Option<Kind> {
        self.kind
    }

    /// [`ActorCritic::step`] in this precision.
    ///
    /// # Errors
    /// libtorch's.
    pub fn step(
        self,
        net: &dyn ActorCritic,
        input: &PolicyInput,
        state: &RecurrentState,
    ) -> Result<NetOutput, TorchError> {
        self.run(|| net.step(input, state))
    }

    /// [`ActorCritic::sequence`] in this precision.
    ///
    /// # Errors
    /// libtorch's.
    pub fn sequence(self, net: &dyn ActorCritic, input: &NetSequence) -> Result<NetOutput, TorchError> {
        self.run(|| net.sequence(input))
    }

    fn run(self, net: impl FnOnce() -> Result<NetOutput, TchError>) -> Result<NetOutput, TorchError> {
        let _autocast = self.kind.map(|kind| Autocast::new(self.device, kind)).transpose()?;
        let whole = || {
            let output = net()?;
            Ok(NetOutput {
                logits: in_f32(&output.logits),
                value: in_f32(&output.value),
                state: RecurrentState(output.state.0.iter().map(in_f32).collect()),
            })
        };
        catch(whole)?
    }
}

/// Itself where it is f32 already.
fn in_f32(tensor: &Tensor) -> Tensor {
    tensor.to_kind(Kind::Float)
}
