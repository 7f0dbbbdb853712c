//! The built-in networks: one feature net, one of three cores, eight action heads, a value, a contribution predictor.

use tch::{Kind, Tensor};

use super::actor_critic::{ActorCritic, NetContext, NetSequence, NetSpec, PolicyInput, SequenceOutput, StepOutput};
use super::cores::{Cell, MlpCore, RecurrentCore};
use super::layers::{HIDDEN_GAIN, Linear, Stack};
use super::parameters::PolicyParams;
use super::recurrent::Packing;
use super::trainable::{ParamGroup, RecurrentState, ValueOutput};
use crate::controller::actions::Head;
use crate::controller::error::PolicyError;
use crate::torch::catch;

/// Gain of the action heads' last layers: a fresh policy is close to uniform.
const ACTION_GAIN: f64 = 0.01;
/// Gain of the last layers of value and contributions: 1 makes the first value losses explode, 0.01 pins them to 0.
const VALUE_GAIN: f64 = 0.1;
const EMBEDDING_DEVIATION: f64 = 0.02;

#[derive(Debug)]
enum Core {
    Recurrent(RecurrentCore),
    Mlp(MlpCore),
}

/// A policy network with one of the built-in cores.
#[derive(Debug)]
pub struct Network {
    spec: NetSpec,
    params: PolicyParams,
    /// One row per blueprint, the last for an empty slot.
    embedding: Tensor,
    feature: Stack,
    /// Between features and core, where their widths differ.
    projection: Option<Linear>,
    core: Core,
    /// By head, in the order of the logits' columns.
    heads: Vec<Stack>,
    /// All of the value head but its last layer, which value normalisation rewrites.
    value: Stack,
    value_output: Linear,
    contribution: Option<Stack>,
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
        let (features, hidden) = (config.feature_dim as i64, config.hidden_dim as i64);
        let shared = ParamGroup::Shared;
        let rows = spec.blueprints as i64 + 1;
        let table = [rows, config.embed_dim as i64];
        let embedding = params.normal("emb.weight", shared, table, EMBEDDING_DEVIATION);
        let width = frame_width(&spec) * config.frame_stack as i64;
        let feature = Stack::new(shared, "feature", width)
            .linear(&mut params, features, HIDDEN_GAIN)
            .layer_norm(&mut params)
            .relu();
        let projection =
            (features != hidden).then(|| Linear::new(&mut params, shared, "core.in", [features, hidden], HIDDEN_GAIN));
        let core = match cell {
            Some(cell) => Core::Recurrent(RecurrentCore::new(&mut params, cell, hidden, config.layers)),
            None => Core::Mlp(MlpCore::new(&mut params, hidden)),
        };
        let heads = action_heads(&spec, hidden, &mut params);
        let value = value_stack(hidden, &mut params);
        let last = [hidden / 8, 1];
        let value_output = Linear::new(&mut params, ParamGroup::Critic, &value.next_name(), last, VALUE_GAIN);
        let contribution = config
            .contribution_head
            .then(|| contribution_stack(&spec, hidden, &mut params));
        Self {
            embedding,
            feature,
            projection,
            core,
            heads,
            value,
            value_output,
            contribution,
            params,
            spec,
        }
    }

    /// `[.., D]` and `[.., S]` to `[.., D + E·S]`: observations with their slots' blueprints embedded.
    fn frames(&self, observations: &Tensor, blueprints: &Tensor) -> Tensor {
        let empty = self.spec.blueprints as i64;
        let rows = blueprints.where_scalarother(&blueprints.ge(0), empty);
        let embedded = Tensor::embedding(&self.embedding, &rows, -1, false, false);
        Tensor::cat(&[observations.shallow_clone(), embedded.flatten(-2, -1)], -1)
    }

    fn core_input(&self, frames: &Tensor) -> Tensor {
        let features = self.feature.forward(frames);
        match &self.projection {
            Some(projection) => projection.forward(&features),
            None => features,
        }
    }

    fn logits(&self, core: &Tensor) -> Tensor {
        let heads: Vec<Tensor> = self.heads.iter().map(|head| head.forward(core)).collect();
        Tensor::cat(&heads, -1)
    }

    fn value(&self, core: &Tensor) -> Tensor {
        self.value_output.forward(&self.value.forward(core)).squeeze_dim(-1)
    }

    /// Frames before the current one that are kept as state.
    fn kept_frames(&self) -> i64 {
        self.spec.config.frame_stack as i64 - 1
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
        let shapes = match &self.core {
            Core::Recurrent(core) => core.state_shapes(rows),
            Core::Mlp(_) if self.kept_frames() > 0 => vec![[self.kept_frames(), rows, frame_width(&self.spec)]],
            Core::Mlp(_) => Vec::new(),
        };
        RecurrentState::zeros(&shapes, self.params.device())
    }

    fn step(&self, input: &PolicyInput, state: &RecurrentState) -> StepOutput {
        let frames = self.frames(&input.observations, &input.blueprints);
        let (core, state) = match &self.core {
            Core::Recurrent(core) => {
                let x = self.core_input(&frames).unsqueeze(1);
                let (x, state) = core.forward(&x, state, None);
                (x.squeeze_dim(1), state)
            }
            Core::Mlp(core) => {
                let lengths = vec![1; frames.size()[0] as usize];
                let (stacked, state) = stack_frames(&frames.unsqueeze(1), state, &lengths);
                (core.forward(&self.core_input(&stacked.squeeze_dim(1))), state)
            }
        };
        StepOutput {
            logits: self.logits(&core),
            value: self.value(&core),
            state,
        }
    }

    fn sequence(&self, input: &NetSequence) -> SequenceOutput {
        let frames = self.frames(input.observations, input.blueprints);
        let (core, state) = match &self.core {
            Core::Recurrent(core) => {
                let steps = frames.size()[1];
                let packing = Packing::new(input.lengths, steps, frames.device());
                let frames = packing.as_ref().map_or(frames.shallow_clone(), |p| p.pack(&frames));
                let (x, state) = core.forward(&self.core_input(&frames), input.initial, packing.as_ref());
                (packing.map_or(x.shallow_clone(), |packing| packing.unpack(&x)), state)
            }
            Core::Mlp(core) => {
                let (stacked, state) = stack_frames(&frames, input.initial, input.lengths);
                (core.forward(&self.core_input(&stacked)), state)
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
            value: self.value(&core),
            contributions,
            state: state.detach(),
        }
    }
}

/// Numbers of one step, D + E·S.
fn frame_width(spec: &NetSpec) -> i64 {
    (spec.observation + spec.config.embed_dim * spec.slots) as i64
}

/// `[B, T, W]` to `[B, T, k·W]`: each step with the k - 1 before it, oldest first. `state` holds those before the first
/// step and, in the result, those up to each row's last one; without state k is 1.
fn stack_frames(frames: &Tensor, state: &RecurrentState, lengths: &[i64]) -> (Tensor, RecurrentState) {
    let Some(earlier) = state.0.first() else {
        return (frames.shallow_clone(), RecurrentState(Vec::new()));
    };
    let (kept, steps, width) = (earlier.size()[0], frames.size()[1], frames.size()[2]);
    let all = Tensor::cat(&[earlier.transpose(0, 1), frames.shallow_clone()], 1);
    let shifted: Vec<Tensor> = (0..=kept).map(|age| all.narrow(1, age, steps)).collect();
    let last: Vec<i64> = lengths.iter().flat_map(|&length| length..length + kept).collect();
    let last = Tensor::from_slice(&last)
        .to_device(frames.device())
        .to_kind(Kind::Int64)
        .view([-1, kept, 1])
        .expand([-1, kept, width], false);
    let newest = all.gather(1, &last, false).transpose(0, 1).contiguous();
    (Tensor::cat(&shifted, -1), RecurrentState(vec![newest]))
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
