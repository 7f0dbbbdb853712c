//! From observations to what heads read: an embedding of blueprints, one feature net, one of three cores.

use tch::{TchError, Tensor};

use super::actor_critic::{NetSequence, NetSpec, PolicyInput};
use super::cores::{Cell, MlpCore, RecurrentCore};
use super::recurrent::Packing;
use super::trainable::RecurrentState;
use crate::nn::{Init, Linear, ParamSet, Stack};

const EMBEDDING: Init = Init::Normal(0.02);

#[derive(Debug)]
enum Core {
    Recurrent(RecurrentCore),
    Mlp(MlpCore),
}

/// What stands before the heads.
#[derive(Debug)]
pub struct Trunk {
    /// One row per blueprint, the last for an empty slot.
    embedding: Tensor,
    feature: Stack,
    /// Between features and core, where their widths differ.
    projection: Option<Linear>,
    core: Core,
    /// Index of an empty slot's row.
    empty: i64,
}

impl Trunk {
    /// `cell`: of a core with memory.
    pub fn new(spec: &NetSpec, cell: Option<Cell>, params: &mut ParamSet) -> Result<Self, TchError> {
        let config = &spec.config;
        let (features, hidden) = (config.feature_dim as i64, config.hidden_dim as i64);
        let rows = spec.blueprints as i64 + 1;
        let table = [rows, config.embed_dim as i64];
        let embedding = params.add("emb.weight", &table, EMBEDDING)?;
        let width = (spec.observation + config.embed_dim * spec.slots) as i64;
        let feature = Stack::new("feature", width)
            .linear(params, features, Init::HIDDEN)?
            .layer_norm(params)?
            .relu();
        let bias = Some(Init::Constant(0.0));
        let mut project = || Linear::new(params, "core.in", [features, hidden], Init::HIDDEN, bias);
        let projection = (features != hidden).then(&mut project).transpose()?;
        let core = match cell {
            Some(cell) => Core::Recurrent(RecurrentCore::new(params, cell, hidden, config.layers)?),
            None => Core::Mlp(MlpCore::new(params, hidden)?),
        };
        Ok(Self {
            embedding,
            feature,
            projection,
            core,
            empty: spec.blueprints as i64,
        })
    }

    /// Lets a core with memory start with its gates open.
    pub fn remember(&self) -> Result<(), TchError> {
        match &self.core {
            Core::Recurrent(core) => core.remember(),
            Core::Mlp(_) => Ok(()),
        }
    }

    /// `[layers, rows, width]` of each tensor of state.
    pub fn state_shapes(&self, rows: i64) -> Vec<[i64; 3]> {
        match &self.core {
            Core::Recurrent(core) => core.state_shapes(rows),
            Core::Mlp(_) => Vec::new(),
        }
    }

    /// One step of `N` envs: `[N, H]` and the state after it.
    pub fn step(&self, input: &PolicyInput, state: &RecurrentState) -> Result<(Tensor, RecurrentState), TchError> {
        let frames = self.frames(&input.observations, &input.blueprints);
        match &self.core {
            Core::Recurrent(core) => {
                let x = self.core_input(&frames)?.unsqueeze(1);
                let (x, state) = core.forward(&x, state, None)?;
                Ok((x.squeeze_dim(1), state))
            }
            Core::Mlp(core) => Ok((core.forward(&self.core_input(&frames)?)?, RecurrentState::default())),
        }
    }

    /// Whole sequences: `[B, T, H]` and the state after each row's last step that is no padding.
    pub fn sequence(&self, input: &NetSequence) -> Result<(Tensor, RecurrentState), TchError> {
        let frames = self.frames(input.observations, input.blueprints);
        match &self.core {
            Core::Recurrent(core) => {
                let steps = frames.size()[1];
                let packing = Packing::new(input.lengths, steps, frames.device());
                let frames = packing.as_ref().map_or(frames.shallow_clone(), |p| p.pack(&frames));
                let (x, state) = core.forward(&self.core_input(&frames)?, input.initial, packing.as_ref())?;
                Ok((packing.map_or(x.shallow_clone(), |packing| packing.unpack(&x)), state))
            }
            Core::Mlp(core) => Ok((core.forward(&self.core_input(&frames)?)?, RecurrentState::default())),
        }
    }

    /// `[.., D]` and `[.., S]` to `[.., D + E·S]`: observations with their slots' blueprints embedded.
    fn frames(&self, observations: &Tensor, blueprints: &Tensor) -> Tensor {
        let rows = blueprints.where_scalarother(&blueprints.ge(0), self.empty);
        let embedded = Tensor::embedding(&self.embedding, &rows, -1, false, false);
        Tensor::cat(&[observations.shallow_clone(), embedded.flatten(-2, -1)], -1)
    }

    fn core_input(&self, frames: &Tensor) -> Result<Tensor, TchError> {
        let features = self.feature.forward(frames)?;
        match &self.projection {
            Some(projection) => projection.forward(&features),
            None => Ok(features),
        }
    }
}
