//! What a policy network is to the controller, and the networks that `policy.net` may name (spec 03 §11).

use std::collections::BTreeMap;

use bevy_ecs::resource::Resource;
use tch::{Device, Tensor};

use super::layout::LogitLayout;
use super::network::Network;
use super::parameters::PolicyParams;
use crate::controller::{PolicyError, RecurrentState, ValueOutput};
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
    pub config: NetConfig,
}

impl NetSpec {
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

#[derive(Debug)]
pub struct StepOutput {
    /// `[N, A]`, laid out as [`LogitLayout`] says.
    pub logits: Tensor,
    /// `[N]`, in normalised units.
    pub value: Tensor,
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
    pub initial: &'a RecurrentState,
    /// Whether the contribution head's gradient reaches the rest of the network.
    pub contributions_train_core: bool,
}

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
    fn spec(&self) -> &NetSpec;

    /// Every trainable tensor once.
    fn params(&self) -> &PolicyParams;

    fn value_output(&self) -> ValueOutput;

    /// State at the start of an episode.
    fn zero_state(&self, rows: i64) -> RecurrentState;

    fn step(&self, input: &PolicyInput, state: &RecurrentState) -> StepOutput;

    fn sequence(&self, input: &NetSequence) -> SequenceOutput;
}

/// Where and from what random numbers a network is built.
#[derive(Clone, Debug)]
pub struct NetContext {
    pub spec: NetSpec,
    pub device: Device,
    /// `run.seed`.
    pub seed: u64,
    /// The policy group's number in random streams.
    pub group: u64,
}

impl NetContext {
    /// No parameters yet, on the device of the run, from the group's own random stream.
    pub fn params(&self) -> PolicyParams {
        PolicyParams::new(self.device, self.seed, self.group)
    }
}

/// Builds a network.
pub type NetFactory = fn(NetContext) -> Result<Box<dyn ActorCritic>, PolicyError>;

/// All networks that `policy.net` may name.
#[derive(Resource, Clone, Debug)]
pub struct NetRegistry {
    nets: BTreeMap<String, Registered>,
}

#[derive(Clone, Debug)]
struct Registered {
    summary: String,
    build: NetFactory,
}

impl Default for NetRegistry {
    /// With the built-in networks.
    fn default() -> Self {
        let build: NetFactory = |context| Ok(Box::new(Network::new(context)?));
        let builtin = [
            ("gru", "residual GRU layers"),
            ("lstm", "residual LSTM layers"),
            (
                "mlp",
                "two residual blocks, no memory beyond policy.net_cfg.frame_stack",
            ),
        ];
        let registered = |(name, summary): (&str, &str)| {
            let summary = summary.to_owned();
            (name.to_owned(), Registered { summary, build })
        };
        Self {
            nets: builtin.into_iter().map(registered).collect(),
        }
    }
}

impl NetRegistry {
    /// Adds a network; `summary` is its line in lists.
    ///
    /// # Errors
    /// The name is taken.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        summary: impl Into<String>,
        build: NetFactory,
    ) -> Result<(), PolicyError> {
        let name = name.into();
        if self.nets.contains_key(&name) {
            return Err(PolicyError::DuplicateRegistration { kind: "network", name });
        }
        let summary = summary.into();
        self.nets.insert(name, Registered { summary, build });
        Ok(())
    }

    /// Names with their summaries, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.nets
            .iter()
            .map(|(name, net)| (name.as_str(), net.summary.as_str()))
    }

    /// Builds the network that the context's spec names.
    ///
    /// # Errors
    /// The name is unknown, or the factory refuses its configuration.
    pub fn build(&self, context: NetContext) -> Result<Box<dyn ActorCritic>, PolicyError> {
        let name = &context.spec.kind;
        let net = self.nets.get(name).ok_or_else(|| PolicyError::UnknownNet {
            name: name.clone(),
            available: self.nets.keys().cloned().collect(),
        })?;
        (net.build)(context)
    }
}
