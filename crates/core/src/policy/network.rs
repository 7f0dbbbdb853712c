//! The built-in network: a trunk around a core, eight action heads, a value.

use tch::{TchError, Tensor};

use super::actor_critic::{ActorCritic, NetContext, NetOutput, NetSequence, NetSpec, PolicyInput};
use super::cores::BuildCore;
use super::parameters::PolicyParams;
use super::trainable::{ParamGroup, RecurrentState};
use super::trunk::Trunk;
use crate::actions::{Head, PolicyError};
use crate::nn::{Init, Linear, ParamSet, Stack};
use crate::torch::{TorchError, catch};

/// The action heads' last layers: a fresh policy is close to uniform.
const ACTION: Init = Init::Orthogonal(0.01);
/// The value head's last layer: a gain of 1 makes the first value losses explode, 0.01 pins them to 0.
const VALUE: Init = Init::Orthogonal(0.1);

/// A policy network around a core: an embedding of blueprints and a layer of features before it, action heads and a value behind
/// it.
#[derive(Debug)]
pub struct Network {
    spec: NetSpec,
    params: PolicyParams,
    trunk: Trunk,
    /// By head, in the order of the logits' columns.
    heads: Vec<Stack>,
    /// All of the value head but its last layer, which value normalisation rewrites.
    value: Stack,
    value_output: Linear,
}

impl Network {
    /// Of the sizes that a valid scenario has.
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
        trunk.prepare()?;
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

    /// What follows from the core's features.
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
        RecurrentState::zeros(&self.trunk.state_shapes(rows), self.params.device())
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

#[cfg(test)]
mod tests;
