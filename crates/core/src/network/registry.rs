//! All hosts that a scenario may choose: the engine's families, hosts registered by name, and networks that were kept.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bevy_ecs::resource::Resource;

use super::file::check_values;
use super::{GrownNetwork, NetworkError};
use crate::data::locate;
use crate::graph::LayerGraph;
use crate::host::{HostDesign, HostError, HostPlan, presets};
use crate::scenario::{Entry, HostChoice, HostName, HostOutline, HostProblem, KnownHosts, TaskSpec};
use crate::schema::{Registry, Settings};
use crate::torch::{Backend, PlainTensor};

/// The file of the network in a folder that `export` has written.
const EXPORTED: &str = "kept.safetensors";

/// Hosts by name: those of the literature, and what plugins add.
#[derive(Clone, Resource)]
pub struct HostRegistry {
    names: Registry<dyn HostDesign>,
    /// Networks that were read, by their files; clones share them, so that each is read once.
    grown: Arc<Mutex<BTreeMap<PathBuf, Arc<GrownHost>>>>,
}

/// A network that was kept, as a host.
struct GrownHost {
    plan: HostPlan,
    weights: BTreeMap<String, PlainTensor>,
    /// Names of the classes, in the order of the logits; empty where none are known.
    classes: Vec<String>,
}

impl HostDesign for GrownHost {
    /// The plan for `classes` classes. If they aren't the network's, the head is drawn, provided that its last layer is one.
    fn plan(&self, classes: i64) -> HostPlan {
        let mut graph = self.plan.graph();
        match graph.layers.last_mut().map(|named| &mut named.layer) {
            Some(LayerGraph::Head { classes: known, .. }) if *known != classes => {
                *known = classes;
                graph.plan().unwrap_or_else(|_| self.plan.clone())
            }
            _ => self.plan.clone(),
        }
    }

    fn weights(&self) -> Option<&BTreeMap<String, PlainTensor>> {
        Some(&self.weights)
    }
}

impl HostRegistry {
    /// The design that a scenario chooses; relative paths begin in `folder`.
    ///
    /// # Errors
    /// [`NetworkError::Host`] for a name that is not registered, or settings that the host does not have; a file that isn't a
    /// network, or one that cannot be built.
    pub fn of(&self, choice: &HostChoice, folder: Option<&Path>) -> Result<Arc<dyn HostDesign>, NetworkError> {
        let named = |name: &HostName, settings: &Settings| -> Result<_, NetworkError> {
            Ok(self.get(&name.0, settings).map_err(HostError::from)?.1)
        };
        Ok(match choice {
            HostChoice::Cnn(spec) => Arc::new(spec.clone()),
            HostChoice::Resnet(spec) => Arc::new(spec.clone()),
            HostChoice::Vgg(spec) => Arc::new(spec.clone()),
            HostChoice::Transformer(spec) => Arc::new(spec.clone()),
            HostChoice::Named(name) => named(name, &Settings::default())?,
            HostChoice::Custom { name, settings } => named(name, settings)?,
            HostChoice::Grown(path) => self.grown(path, folder)?,
        })
    }

    /// Names of the classes that a task's kept network, its host or its weights, has learnt, in the order of its logits; empty
    /// where none are known. A file that cannot be read is refused when its tensors are.
    pub fn classes(&self, task: &TaskSpec, folder: Option<&Path>) -> Vec<String> {
        let read = || match (&task.weights, &task.host) {
            (Some(weights), _) => {
                let kept = GrownNetwork::load_any(&find(&weights.path, folder).ok()?).ok()?;
                Some(kept.ok()?.data.classes)
            }
            (None, HostChoice::Grown(path)) => Some(self.grown(path, folder).ok()?.classes.clone()),
            _ => None,
        };
        read().unwrap_or_default()
    }

    fn grown(&self, name: &str, folder: Option<&Path>) -> Result<Arc<GrownHost>, NetworkError> {
        let path = find(name, folder)?;
        // A panic while the lock was held has not left an incomplete entry.
        let mut known = self.grown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = known.get(&path) {
            return Ok(Arc::clone(host));
        }
        let network = GrownNetwork::load(&path)?;
        // Checks that its tensors fit its layers.
        network.build(Backend::CPU)?;
        let mut tensors = network.parameters.iter();
        tensors.try_for_each(|(name, tensor)| check_values(&path, name, tensor))?;
        let host = Arc::new(GrownHost {
            plan: network.graph.plan()?,
            weights: network.parameters,
            classes: network.data.classes,
        });
        known.insert(path, Arc::clone(&host));
        Ok(host)
    }
}

/// The place of a scenario's file of tensors. For the folder of an export it is the network in it.
///
/// # Errors
/// [`NetworkError::Missing`].
pub(super) fn find(name: &str, folder: Option<&Path>) -> Result<PathBuf, NetworkError> {
    let mut path = locate(name, folder).map_err(|looked_at| NetworkError::Missing {
        name: name.into(),
        looked_at,
    })?;
    if path.is_dir() {
        path.push(EXPORTED);
    }
    Ok(path)
}

impl Default for HostRegistry {
    /// The hosts of the literature.
    fn default() -> Self {
        let mut hosts = Self {
            names: Registry::new("host"),
            grown: Arc::default(),
        };
        for (name, summary, design) in presets() {
            hosts.register(name, summary, design);
        }
        hosts
    }
}

impl fmt::Debug for HostRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.names.fmt(f)
    }
}

impl Deref for HostRegistry {
    type Target = Registry<dyn HostDesign>;

    fn deref(&self) -> &Self::Target {
        &self.names
    }
}

impl DerefMut for HostRegistry {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.names
    }
}

impl KnownHosts for HostRegistry {
    fn entries(&self) -> Vec<Entry> {
        self.iter().map(|(name, summary)| Entry::new(name, summary)).collect()
    }

    fn outline(&self, host: &HostChoice, classes: i64, folder: Option<&Path>) -> Result<HostOutline, String> {
        let design = self.of(host, folder).map_err(|error| error.to_string())?;
        let plan = design.plan(classes);
        let mut outline = plan.outline();
        let problems = design.problems();
        if !problems.is_empty() {
            outline.problems = problems;
        }
        let made = plan.features().channels;
        if matches!(host, HostChoice::Grown(_)) && made != classes {
            outline.problems.push(HostProblem {
                fields: Vec::new(),
                message: format!("the network distinguishes {made} classes, but the task has {classes}"),
            });
        }
        Ok(outline)
    }
}
