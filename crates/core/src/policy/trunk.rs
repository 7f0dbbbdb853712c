//! From observations to what heads read: an embedding of blueprints, one feature net, a core.

use tch::{TchError, Tensor};

use super::actor_critic::{NetSequence, NetSpec, PolicyInput};
use super::cores::{BuildCore, NetCore};
use super::recurrent::Packing;
use super::trainable::RecurrentState;
use crate::nn::{Init, Linear, ParamSet, Stack};

const EMBEDDING: Init = Init::Normal(0.02);
/// Size of the embedding of a blueprint.
pub const EMBEDDING_SIZE: usize = 4;

/// What precedes the heads.
#[derive(Debug)]
pub struct Trunk {
    /// One row per blueprint, the last for an empty slot.
    embedding: Tensor,
    feature: Stack,
    /// Between features and core, where their widths differ.
    projection: Option<Linear>,
    core: Box<dyn NetCore>,
    has_memory: bool,
    /// Index of an empty slot's row.
    empty: i64,
}

impl Trunk {
    /// `core` adds the core's parameters behind the others.
    pub fn new(spec: &NetSpec, core: BuildCore, params: &mut ParamSet) -> Result<Self, TchError> {
        let config = &spec.config;
        let (features, hidden) = (config.feature_dim as i64, config.hidden_dim as i64);
        let rows = spec.blueprints as i64 + 1;
        let table = [rows, EMBEDDING_SIZE as i64];
        let embedding = params.add("emb.weight", &table, EMBEDDING)?;
        let width = (spec.observation + EMBEDDING_SIZE * spec.slots) as i64;
        let feature = Stack::new("feature", width)
            .linear(params, features, Init::HIDDEN)?
            .layer_norm(params)?
            .relu();
        let bias = Some(Init::Constant(0.0));
        let mut project = || Linear::new(params, "core.in", [features, hidden], Init::HIDDEN, bias);
        let projection = (features != hidden).then(&mut project).transpose()?;
        let core = core(config, params)?;
        Ok(Self {
            embedding,
            feature,
            projection,
            has_memory: !core.state_shapes(1).is_empty(),
            core,
            empty: spec.blueprints as i64,
        })
    }

    /// Sets the weights of the core that are drawn by no law.
    pub fn prepare(&self) -> Result<(), TchError> {
        self.core.prepare()
    }

    /// `[layers, rows, width]` of each tensor of state.
    pub fn state_shapes(&self, rows: i64) -> Vec<[i64; 3]> {
        self.core.state_shapes(rows)
    }

    /// One step of `N` envs: `[N, H]` and the state after it.
    pub fn step(&self, input: &PolicyInput, state: &RecurrentState) -> Result<(Tensor, RecurrentState), TchError> {
        let x = self.core_input(&self.frames(&input.observations, &input.blueprints))?;
        if !self.has_memory {
            return self.core.forward(&x, state, None);
        }
        let (x, state) = self.core.forward(&x.unsqueeze(1), state, None)?;
        Ok((x.squeeze_dim(1), state))
    }

    /// Whole sequences: `[B, T, H]` and the state after each row's last step that is no padding.
    pub fn sequence(&self, input: &NetSequence) -> Result<(Tensor, RecurrentState), TchError> {
        let frames = self.frames(input.observations, input.blueprints);
        let (steps, device) = (frames.size()[1], frames.device());
        let packing = self.has_memory.then(|| Packing::new(input.lengths, steps, device));
        let packing = packing.transpose()?.flatten();
        let frames = packing.as_ref().map_or(frames.shallow_clone(), |p| p.pack(&frames));
        let (x, state) = self
            .core
            .forward(&self.core_input(&frames)?, input.initial, packing.as_ref())?;
        Ok((packing.map_or(x.shallow_clone(), |packing| packing.unpack(&x)), state))
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
