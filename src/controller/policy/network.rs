//! The built-in networks: a trunk, eight action heads, a value, a contribution predictor; the value may have a trunk of its
//! own.

use tch::Tensor;

use super::actor_critic::{ActorCritic, NetContext, NetSequence, NetSpec, PolicyInput, SequenceOutput, StepOutput};
use super::cores::Cell;
use super::layers::{HIDDEN_GAIN, Linear, Stack};
use super::parameters::PolicyParams;
use super::trainable::{ParamGroup, RecurrentState, ValueOutput, ValueSequence};
use super::trunk::{Trunk, TrunkSequence};
use crate::controller::actions::Head;
use crate::controller::error::PolicyError;
use crate::scenario::CriticCore;
use crate::torch::{NoGrad, catch};

/// Gain of the action heads' last layers: a fresh policy is close to uniform.
const ACTION_GAIN: f64 = 0.01;
/// Gain of the last layers of value and contributions: 1 makes the first value losses explode, 0.01 pins them to 0.
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
    contribution: Option<Stack>,
    /// What the value reads where that is not the trunk of the heads.
    critic: Option<Trunk>,
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
        let config = &spec.config;
        let hidden = config.hidden_dim as i64;
        let trunk = Trunk::new(&spec, cell, ParamGroup::Shared, "", &mut params);
        let heads = action_heads(&spec, hidden, &mut params);
        let value = value_stack(hidden, &mut params);
        let last = [hidden / 8, 1];
        let value_output = Linear::new(&mut params, ParamGroup::Critic, &value.next_name(), last, VALUE_GAIN);
        let contribution = config
            .contribution_head
            .then(|| contribution_stack(&spec, hidden, &mut params));
        // After all the others, whose values it must not change.
        let critic = (config.critic_core == CriticCore::Separate)
            .then(|| Trunk::new(&spec, cell, ParamGroup::Critic, "critic.", &mut params));
        Self {
            trunk,
            heads,
            value,
            value_output,
            contribution,
            critic,
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

    /// The states of the heads' trunk and of the critic's own.
    fn split(&self, state: &RecurrentState) -> (RecurrentState, RecurrentState) {
        let mut actor = state.shallow_clone().0;
        let critic = actor.split_off(actor.len().saturating_sub(self.critic_states()));
        (RecurrentState(actor), RecurrentState(critic))
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
        let trunks = [Some(&self.trunk), self.critic.as_ref()].into_iter().flatten();
        let shapes: Vec<[i64; 3]> = trunks.flat_map(|trunk| trunk.state_shapes(rows)).collect();
        RecurrentState::zeros(&shapes, self.params.device())
    }

    fn critic_states(&self) -> usize {
        self.critic.as_ref().map_or(0, |trunk| trunk.state_shapes(0).len())
    }

    fn step(&self, input: &PolicyInput, state: &RecurrentState) -> StepOutput {
        let (actor, critic) = self.split(state);
        let (core, mut state) = self.trunk.step(input, &actor);
        let value = match &self.critic {
            None => self.value(&core),
            Some(trunk) => {
                let (core, after) = trunk.step(input, &critic);
                state.0.extend(after.0);
                self.value(&core)
            }
        };
        StepOutput {
            logits: self.logits(&core),
            value,
            state,
        }
    }

    fn values(&self, input: &ValueSequence) -> Tensor {
        let (actor, critic) = self.split(input.initial);
        let steps = TrunkSequence {
            observations: input.observations,
            blueprints: input.blueprints,
            lengths: input.lengths,
        };
        let core = match &self.critic {
            Some(trunk) => trunk.sequence(steps, &critic).0,
            None => {
                // The policy's own: its value may read it, not move it.
                let _no_grad = NoGrad::new();
                self.trunk.sequence(steps, &actor).0
            }
        };
        self.value(&core)
    }

    fn sequence(&self, input: &NetSequence) -> SequenceOutput {
        let (actor, critic) = self.split(input.initial);
        let steps = TrunkSequence {
            observations: input.observations,
            blueprints: input.blueprints,
            lengths: input.lengths,
        };
        let (core, mut state) = self.trunk.sequence(steps, &actor);
        let value = match &self.critic {
            None => self.value(&core),
            Some(trunk) => {
                let (core, after) = trunk.sequence(steps, &critic);
                state.0.extend(after.0);
                self.value(&core)
            }
        };
        let contributions = self.contribution.as_ref().map(|predictor| {
            if input.contributions_train_core {
                predictor.forward(&core)
            } else {
                predictor.forward(&core.detach())
            }
        });
        SequenceOutput {
            logits: self.logits(&core),
            value,
            contributions,
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

fn contribution_stack(spec: &NetSpec, hidden: i64, params: &mut PolicyParams) -> Stack {
    Stack::new(ParamGroup::Auxiliary, "contrib", hidden)
        .linear(params, hidden / 2, HIDDEN_GAIN)
        .layer_norm(params)
        .relu()
        .dropout(spec.config.aux_dropout)
        .linear(params, hidden / 4, HIDDEN_GAIN)
        .relu()
        .linear(params, spec.slots as i64, VALUE_GAIN)
}

#[cfg(test)]
mod tests;
