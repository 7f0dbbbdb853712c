//! A network's trainable tensors, and which part of the policy each belongs to.
//!
//! Values are drawn on the CPU from the engine's own generator, so a policy starts alike on every device, independent of
//! other draws in the process. Tensors keep their storage for the whole run: loading and learning write in place.

use tch::{Device, TchError};

use super::trainable::{ParamGroup, PolicyParam};
use crate::nn::ParamSet;
use crate::random::{Domain, RunRng};
use crate::scenario::Kernels;
use crate::torch::Backend;

/// All trainable tensors of a network, in a fixed order, and the seed that their values come from.
#[derive(Debug)]
pub struct PolicyParams {
    set: ParamSet,
    /// Where a part begins, by the index of its first parameter.
    parts: Vec<(usize, ParamGroup)>,
    seed: u64,
}

impl PolicyParams {
    /// `seed`: the run's.
    pub fn new(device: Device, seed: u64) -> Self {
        Self {
            set: ParamSet::new(Backend::new(device, Kernels::Libtorch)),
            parts: Vec::new(),
            seed,
        }
    }

    /// Where parameters of a part are added.
    pub fn of(&mut self, group: ParamGroup) -> &mut ParamSet {
        self.parts.push((self.set.trainable().len(), group));
        &mut self.set
    }

    /// Draws all values: once the network is built, before it computes anything.
    ///
    /// # Errors
    /// libtorch's, if there is not enough memory.
    pub fn initialise(&mut self) -> Result<(), TchError> {
        self.set
            .initialise(&mut RunRng::new(self.seed, Domain::PolicyInit, &[0]))
    }

    /// Where the tensors live.
    pub fn device(&self) -> Device {
        self.set.device()
    }

    /// Further handles, in construction order.
    pub fn iter(&self) -> impl Iterator<Item = PolicyParam> {
        let part = |index: usize| self.parts.iter().rfind(|(first, _)| *first <= index);
        self.set
            .trainable()
            .iter()
            .enumerate()
            .filter_map(move |(index, param)| {
                Some(PolicyParam {
                    name: param.name.clone(),
                    tensor: param.tensor.shallow_clone(),
                    group: part(index)?.1,
                })
            })
    }

    /// Number of trainable values.
    pub fn count(&self) -> u64 {
        self.set.count()
    }
}
