//! The built-in network - from observations to what heads read (an embedding of blueprints, one feature net, a core), eight action heads, a
//! value - and all networks that `policy.net` may name.

use std::sync::Arc;

use tch::{TchError, Tensor};

use super::actor_critic::{ActorCritic, NetContext, NetOutput, NetSequence, NetSpec, PolicyInput};
use super::cores::{BuildCore, CoreOutput, Lstm, NetCore, RecurrentCore};
use super::recurrent::Packing;
use super::trainable::{ParamGroup, PolicyParams, RecurrentState};
use super::window::WindowCore;
use crate::actions::{Head, PolicyError};
use crate::nn::{Init, Linear, ParamSet, Stack};
use crate::scenario::NetConfig;
use crate::schema::{Registry, Settings, registry};
use crate::torch::{TorchError, catch};

const EMBEDDING: Init = Init::Normal(0.02);
/// Size of the embedding of a blueprint.
pub const EMBEDDING_SIZE: usize = 4;

/// Layers before the heads.
#[derive(Debug)]
pub struct Trunk {
    /// One row per blueprint, the last for an empty slot.
    embedding: Tensor,
    feature: Stack,
    core: Box<dyn NetCore>,
    has_memory: bool,
    /// Index of an empty slot's row.
    empty: i64,
}

impl Trunk {
    /// Builds the parts in order; `core` adds the core's parameters after the others.
    pub fn new(spec: &NetSpec, core: BuildCore, params: &mut ParamSet) -> Result<Self, TchError> {
        let config = &spec.config;
        let table = [spec.blueprints as i64 + 1, EMBEDDING_SIZE as i64];
        let embedding = params.add("emb.weight", &table, EMBEDDING)?;
        let width = (spec.observation + EMBEDDING_SIZE * spec.slots) as i64;
        let feature = Stack::new("feature", width)
            .linear(params, config.hidden_dim as i64, Init::HIDDEN)?
            .layer_norm(params)?
            .relu();
        let core = core(config, params)?;
        Ok(Self {
            embedding,
            feature,
            has_memory: !core.state_shapes(1).is_empty(),
            core,
            empty: spec.blueprints as i64,
        })
    }

    /// One step of `N` envs: `[N, H]` and the state after it.
    pub fn step(&self, input: &PolicyInput, state: &RecurrentState) -> Result<CoreOutput, TchError> {
        let x = self
            .feature
            .forward(&self.frames(&input.observations, &input.blueprints))?;
        if !self.has_memory {
            return self.core.forward(&x, state, None);
        }
        let (x, state) = self.core.forward(&x.unsqueeze(1), state, None)?;
        Ok((x.squeeze_dim(1), state))
    }

    /// Runs whole sequences: `[B, T, H]` and the state after each row's last step that isn't padding.
    pub fn sequence(&self, input: &NetSequence) -> Result<CoreOutput, TchError> {
        let frames = self.frames(input.observations, input.blueprints);
        let (steps, device) = (frames.size()[1], frames.device());
        let packing = self.has_memory.then(|| Packing::new(input.lengths, steps, device));
        let packing = packing.transpose()?.flatten();
        let frames = packing.as_ref().map_or(frames.shallow_clone(), |p| p.pack(&frames));
        let (x, state) = self
            .core
            .forward(&self.feature.forward(&frames)?, input.initial, packing.as_ref())?;
        Ok((packing.map_or(x.shallow_clone(), |packing| packing.unpack(&x)), state))
    }

    /// `[.., D]` and `[.., S]` to `[.., D + E·S]`: observations with their slots' blueprints embedded.
    fn frames(&self, observations: &Tensor, blueprints: &Tensor) -> Tensor {
        let rows = blueprints.where_scalarother(&blueprints.ge(0), self.empty);
        let embedded = Tensor::embedding(&self.embedding, &rows, -1, false, false);
        Tensor::cat(&[observations.shallow_clone(), embedded.flatten(-2, -1)], -1)
    }
}

/// The action heads' last layers: a fresh policy is close to uniform.
const ACTION: Init = Init::Orthogonal(0.01);
/// The value head's last layer: a gain of 1 makes the first value losses explode, 0.01 pins them to 0.
const VALUE: Init = Init::Orthogonal(0.1);

/// A policy network around a core: an embedding of blueprints and a layer of features before it, action heads and a value after
/// it.
#[derive(Debug)]
pub struct Network {
    spec: NetSpec,
    params: PolicyParams,
    trunk: Trunk,
    /// The stacks by head, in the order of the logits' columns.
    heads: Vec<Stack>,
    /// The value head without its last layer, which value normalisation rewrites.
    value: Stack,
    value_output: Linear,
}

impl Network {
    /// Network of the sizes that a valid scenario has.
    ///
    /// # Errors
    /// A device error.
    pub fn new(context: NetContext, core: BuildCore) -> Result<Self, PolicyError> {
        Ok(catch(|| Self::build(context, core))?.map_err(TorchError::from)?)
    }

    fn build(context: NetContext, core: BuildCore) -> Result<Self, TchError> {
        let mut params = context.params();
        let spec = context.spec;
        let hidden = spec.config.hidden_dim as i64;
        let trunk = Trunk::new(&spec, core, params.of(ParamGroup::Shared))?;
        let heads = action_heads(&spec, hidden, params.of(ParamGroup::ActorHeads))?;
        let critic = params.of(ParamGroup::Critic);
        let value = value_stack(hidden, critic)?;
        let (name, zero) = (value.next_name(), Some(Init::Constant(0.0)));
        let value_output = Linear::new(critic, &name, [hidden / 8, 1], VALUE, zero)?;
        params.initialise()?;
        trunk.core.prepare()?;
        // The op's columns come first.
        heads[0].set_bias(&spec.config.op_bias.values())?;
        Ok(Self {
            trunk,
            heads,
            value,
            value_output,
            params,
            spec,
        })
    }

    fn logits(&self, core: &Tensor) -> Result<Tensor, TchError> {
        let heads = self.heads.iter().map(|head| head.forward(core));
        Tensor::f_cat(&heads.collect::<Result<Vec<_>, _>>()?, -1)
    }

    /// Output of the heads for the core's features.
    fn output(&self, core: &Tensor, state: RecurrentState) -> Result<NetOutput, TchError> {
        let value = self.value_output.forward(&self.value.forward(core)?)?;
        Ok(NetOutput {
            value: value.f_squeeze_dim(-1)?,
            logits: self.logits(core)?,
            state,
        })
    }
}

impl ActorCritic for Network {
    fn spec(&self) -> &NetSpec {
        &self.spec
    }

    fn params(&self) -> &PolicyParams {
        &self.params
    }

    fn value_output(&self) -> Linear {
        self.value_output.share()
    }

    fn zero_state(&self, rows: i64) -> RecurrentState {
        RecurrentState::zeros(&self.trunk.core.state_shapes(rows), self.params.device())
    }

    fn step(&self, input: &PolicyInput, state: &RecurrentState) -> Result<NetOutput, TchError> {
        let (core, state) = self.trunk.step(input, state)?;
        self.output(&core, state)
    }

    fn sequence(&self, input: &NetSequence) -> Result<NetOutput, TchError> {
        let (core, state) = self.trunk.sequence(input)?;
        self.output(&core, state.detach())
    }
}

fn action_heads(spec: &NetSpec, hidden: i64, params: &mut ParamSet) -> Result<Vec<Stack>, TchError> {
    let layout = spec.layout();
    let mut heads = Head::ALL.map(|head| (layout.head(head), head));
    heads.sort_by_key(|(columns, _)| columns.first);
    heads
        .iter()
        .map(|(columns, head)| {
            let stack = Stack::new(format!("head.{head}"), hidden);
            // The blueprint is the widest and most consequential choice: one layer more.
            let stack = match head {
                Head::Blueprint => stack.linear(params, hidden, Init::HIDDEN)?.relu(),
                _ => stack,
            };
            let stack = stack.linear(params, hidden / 2, Init::HIDDEN)?.relu();
            stack.linear(params, columns.width() as i64, ACTION)
        })
        .collect()
}

fn value_stack(hidden: i64, params: &mut ParamSet) -> Result<Stack, TchError> {
    let stack = Stack::new("value", hidden)
        .linear(params, hidden / 2, Init::HIDDEN)?
        .layer_norm(params)?
        .relu()
        .linear(params, hidden / 4, Init::HIDDEN)?
        .layer_norm(params)?
        .relu()
        .linear(params, hidden / 8, Init::HIDDEN)?
        .relu();
    Ok(stack)
}

/// Builds a network.
pub type NetFactory = dyn Fn(NetContext) -> Result<Box<dyn ActorCritic>, PolicyError> + Send + Sync;

registry! {
    /// All networks that `policy.net` may name.
    pub struct NetRegistry(NetFactory);
}

impl Default for NetRegistry {
    /// A registry with the built-in networks.
    fn default() -> Self {
        let mut nets = Self(Registry::new("network"));
        nets.register_core("lstm", "residual LSTM layers", |config, params| {
            Ok(Box::new(RecurrentCore::<Lstm>::new(config, params)?))
        });
        nets.register_core("window", "attention to the last 16 steps", |config, params| {
            Ok(Box::new(WindowCore::new(config, params)?))
        });
        nets
    }
}

impl NetRegistry {
    /// Adds a network that differs from the engine's only in its core: `build` makes one for these sizes, and adds its parameters
    /// to the set.
    pub fn register_core(
        &mut self,
        name: &str,
        summary: &str,
        build: impl Fn(&NetConfig, &mut ParamSet) -> Result<Box<dyn NetCore>, TchError> + Send + Sync + 'static,
    ) {
        let net = move |context| Ok(Box::new(Network::new(context, &build)?) as _);
        self.register(name, summary, Arc::new(net));
    }

    /// Builds the network that the context's spec names, with what the scenario sets of it.
    ///
    /// # Errors
    /// The name is unknown, or the factory refuses its configuration.
    pub fn build(&self, context: NetContext, settings: &Settings) -> Result<Box<dyn ActorCritic>, PolicyError> {
        let (_, build) = self.get(&context.spec.kind, settings)?;
        build(context)
    }
}

#[cfg(test)]
mod tests;
