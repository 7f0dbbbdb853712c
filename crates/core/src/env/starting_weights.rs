//! Weights that episodes start from, where they are not drawn: those of a grown host, and given ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_ecs::prelude::*;

use super::Experiment;
use crate::hash::sha256_of;
use crate::health::Failure;
use crate::host::HostDesign;
use crate::network::{GivenWeights, HostRegistry, NetworkError};
use crate::nn::ParamSet;
use crate::scenario::{HostChoice, stands_for};
use crate::torch::{PlainTensor, TorchError, copy_into};

/// Weights that replace the drawn ones of a new episode, later ones over earlier ones.
#[derive(Resource)]
pub struct StartingWeights {
    design: Arc<dyn HostDesign>,
    given: BTreeMap<String, PlainTensor>,
    /// First envs that start from the given ones.
    envs: usize,
    /// SHA-256 of their names and values, in lower-case hexadecimal. `None` if all weights are drawn.
    pub hash: Option<String>,
}

impl StartingWeights {
    /// Reads what the scenario names, and says what of it is not used.
    ///
    /// # Errors
    /// Files that are missing or don't fit the host, or frozen layers for which they have no weights.
    pub fn read(experiment: &Experiment, hosts: &HostRegistry) -> Result<Self, NetworkError> {
        let (task, folder) = (&experiment.task, experiment.folder.as_deref());
        let design = hosts.of(&task.host, folder)?;
        let kept = match &task.host {
            HostChoice::Grown(path) => Some(path),
            _ => None,
        };
        let (plan, weights) = (
            design.plan(task.classes),
            task.weights.as_ref().map(|weights| &weights.path),
        );
        let (mut given, mut absent) = (BTreeMap::new(), None::<Vec<String>>);
        for path in kept.into_iter().chain(weights) {
            let read = GivenWeights::read(path, folder, &plan)?;
            for note in &read.notes {
                tracing::warn!("{note}");
            }
            let is_absent = |name: &String| absent.as_ref().is_none_or(|before| before.contains(name));
            absent = Some(read.absent.into_iter().filter(is_absent).collect());
            given = read.tensors;
        }
        let own = design.weights().filter(|_| kept.is_none());
        let is_drawn = |name: &String| own.is_none_or(|own| !own.contains_key(name));
        let is_frozen = |name: &String| task.freeze.iter().flatten().any(|layer| stands_for(layer, name));
        let absent = absent.into_iter().flatten();
        let drawn: Vec<String> = absent.filter(|name| is_frozen(name) && is_drawn(name)).collect();
        if let Some(weights) = weights.or(kept).filter(|_| !drawn.is_empty()).cloned() {
            return Err(NetworkError::Frozen { weights, drawn });
        }
        if task.weights.is_none() {
            // A kept network brings its own.
            given.clear();
        }
        Ok(Self {
            hash: hash_of(design.weights().into_iter().chain(Some(&given))),
            design,
            given,
            envs: task
                .weights
                .as_ref()
                .and_then(|weights| weights.envs)
                .unwrap_or(usize::MAX),
        })
    }

    /// Copies them into the parameters of an env's host, which have been drawn. Call inside the env's stream guard.
    ///
    /// # Errors
    /// libtorch's.
    pub fn copy_to(&self, params: &ParamSet, env: usize) -> Result<(), TorchError> {
        let given = (env < self.envs).then_some(&self.given);
        for weights in self.design.weights().into_iter().chain(given) {
            for param in params.all() {
                // A kept head for other classes does not fit the one that is drawn.
                if let Some(values) = weights
                    .get(&param.name)
                    .filter(|values| values.is_of_shape(&param.tensor))
                {
                    copy_into(&param.tensor, &values.to_tensor()?, false)?;
                }
            }
        }
        Ok(())
    }
}

/// Once: they may be many, and every checkpoint has it.
fn hash_of<'a>(weights: impl Iterator<Item = &'a BTreeMap<String, PlainTensor>>) -> Option<String> {
    let parts = weights
        .flatten()
        .flat_map(|(name, values)| [name.as_bytes(), values.bytes()]);
    let mut parts = parts.peekable();
    parts.peek().is_some().then(|| sha256_of(parts))
}

/// Reads the weights that episodes start from, or says why not, before anything is trained.
pub fn read_weights(
    mut commands: Commands,
    experiment: Res<Experiment>,
    hosts: Res<HostRegistry>,
) -> Result<(), Failure> {
    commands.insert_resource(StartingWeights::read(&experiment, &hosts)?);
    Ok(())
}
