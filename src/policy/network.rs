//! The built-in networks: a trunk, eight action heads, a value.

use tch::Tensor;

use super::actor_critic::{ActorCritic, NetContext, NetSequence, NetSpec, PolicyInput, SequenceOutput, StepOutput};
use super::cores::Cell;
use super::layers::{HIDDEN_GAIN, Linear, Stack};
use super::parameters::PolicyParams;
use super::trainable::{ParamGroup, RecurrentState, ValueOutput};
use super::trunk::Trunk;
use crate::actions::{Head, PolicyError};
use crate::torch::catch;

/// Gain of the action heads' last layers: a fresh policy is close to uniform.
const ACTION_GAIN: f64 = 0.01;
/// Gain of the value head's last layer: 1 makes the first value losses explode, 0.01 pins them to 0.
const VALUE_GAIN: f64 = 0.1;

/// A policy network with one of the built-in cores.
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
    pub fn new(context: NetContext) -> Result<Self, PolicyError> {
        let cell = match context.spec.kind.as_str() {
            "gru" => Some(Cell::Gru),
            "mlp" => None,
            _ => Some(Cell::Lstm),
        };
        Ok(catch(|| Self::build(context, cell))?)
    }

    fn build(context: NetContext, cell: Option<Cell>) -> Self {
        let mut params = context.params();
        let spec = context.spec;
        let hidden = spec.config.hidden_dim as i64;
        let trunk = Trunk::new(&spec, cell, &mut params);
        let heads = action_heads(&spec, hidden, &mut params);
        let value = value_stack(hidden, &mut params);
        let last = [hidden / 8, 1];
        let value_output = Linear::new(&mut params, ParamGroup::Critic, &value.next_name(), last, VALUE_GAIN);
        Self {
            trunk,
            heads,
            value,
            value_output,
            params,
            spec,
        }
    }

    fn logits(&self, core: &Tensor) -> Tensor {
        let heads: Vec<Tensor> = self.heads.iter().map(|head| head.forward(core)).collect();
        Tensor::cat(&heads, -1)
    }

    fn value(&self, core: &Tensor) -> Tensor {
        self.value_output.forward(&self.value.forward(core)).squeeze_dim(-1)
    }
}

impl ActorCritic for Network {
    fn spec(&self) -> &NetSpec {
        &self.spec
    }

    fn params(&self) -> &PolicyParams {
        &self.params
    }

    fn value_output(&self) -> ValueOutput {
        ValueOutput::from(&self.value_output)
    }

    fn zero_state(&self, rows: i64) -> RecurrentState {
        RecurrentState::zeros(&self.trunk.state_shapes(rows), self.params.device())
    }

    fn step(&self, input: &PolicyInput, state: &RecurrentState) -> StepOutput {
        let (core, state) = self.trunk.step(input, state);
        StepOutput {
            logits: self.logits(&core),
            value: self.value(&core),
            state,
        }
    }

    fn sequence(&self, input: &NetSequence) -> SequenceOutput {
        let (core, state) = self.trunk.sequence(input);
        let value = self.value(&core);
        SequenceOutput {
            logits: self.logits(&core),
            value,
            state: state.detach(),
        }
    }
}

fn action_heads(spec: &NetSpec, hidden: i64, params: &mut PolicyParams) -> Vec<Stack> {
    let layout = spec.layout();
    let mut heads = Head::ALL.map(|head| (layout.head(head), head));
    heads.sort_by_key(|(columns, _)| columns.first);
    heads
        .iter()
        .map(|(columns, head)| {
            let stack = Stack::new(ParamGroup::ActorHeads, format!("head.{head}"), hidden);
            // The blueprint is the widest and most consequential choice: one layer more.
            let stack = match head {
                Head::Blueprint => stack.linear(params, hidden, HIDDEN_GAIN).relu(),
                _ => stack,
            };
            let stack = stack.linear(params, hidden / 2, HIDDEN_GAIN).relu().linear(
                params,
                columns.width() as i64,
                ACTION_GAIN,
            );
            match head {
                Head::Op => stack.biased(&spec.config.op_bias.values()),
                _ => stack,
            }
        })
        .collect()
}

fn value_stack(hidden: i64, params: &mut PolicyParams) -> Stack {
    Stack::new(ParamGroup::Critic, "value", hidden)
        .linear(params, hidden / 2, HIDDEN_GAIN)
        .layer_norm(params)
        .relu()
        .linear(params, hidden / 4, HIDDEN_GAIN)
        .layer_norm(params)
        .relu()
        .linear(params, hidden / 8, HIDDEN_GAIN)
        .relu()
}

#[cfg(test)]
mod tests;
