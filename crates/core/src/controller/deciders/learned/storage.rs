//! A learned policy on disk: weights as safetensors, everything else as RON.

use std::collections::BTreeSet;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use tch::{Device, Tensor};

use crate::actions::{Head, PolicyError};
use crate::controller::saved::{Differences, SavedFolder, storage, to_ron, write_folder};
use crate::controller::view::RunningMoments;
use crate::hash::sha256;
use crate::policy::{PolicyParam, PolicyParams};
use crate::scenario::NetConfig;
use crate::torch::{catch, copy_all, encode_tensors};

/// File of the weights in the folder of a saved policy, in safetensors.
pub const WEIGHTS_FILE: &str = "policy.safetensors";
/// File of everything else in the folder of a saved policy, in RON.
pub const MANIFEST_FILE: &str = "policy.ron";
pub const FORMAT: u32 = 1;
/// Version of the value head's input and units: the state alone, in normalised units.
pub const VALUE_HEAD: u32 = 1;

/// All of a saved policy but its weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyManifest {
    pub format: u32,
    pub net: String,
    pub net_cfg: NetConfig,
    /// In policy order.
    pub slots: Vec<String>,
    /// By index.
    pub blueprints: Vec<String>,
    /// SHA-256 of the lines `head:member`, in order.
    pub action_space: String,
    /// `head:member` of each member that the scenario doesn't allow, and that was therefore never tried and never learnt.
    #[serde(default)]
    pub excluded: Vec<String>,
    pub observation: usize,
    pub schema_hash: String,
    pub value_head: u32,
    pub floor_scale: f64,
    pub statistics: Vec<RunningMoments>,
    /// Updates that the weights have seen.
    pub updates: u64,
    /// SHA-256 of the file of weights, which reveals a manifest with other weights. Known once they are written.
    pub weights: String,
}

impl PolicyManifest {
    /// Notes each way in which `self`, as saved, doesn't fit a running policy.
    fn compare(&self, running: &Self, diffs: &mut Differences) {
        diffs.compare("format", &self.format, &running.format);
        diffs.compare("net", &self.net, &running.net);
        diffs.compare("net_cfg", &self.net_cfg, &running.net_cfg);
        diffs.compare("slots", &self.slots, &running.slots);
        diffs.compare("blueprints", &self.blueprints, &running.blueprints);
        diffs.compare("action space", &self.action_space, &running.action_space);
        diffs.compare("excluded choices", &self.excluded, &running.excluded);
        diffs.compare("observation size", &self.observation, &running.observation);
        diffs.compare("observation schema hash", &self.schema_hash, &running.schema_hash);
        diffs.compare("value head", &self.value_head, &running.value_head);
        let lengths = (self.statistics.len(), running.statistics.len());
        diffs.compare("normaliser statistics", &lengths.0, &lengths.1);
    }

    /// The manifest of a policy that knows only these blueprints, which are the first of its own.
    fn with_blueprints(&self, known: &[String]) -> Self {
        let added = &self.blueprints[known.len()..];
        let is_known = |choice: &String| {
            let name = choice.strip_prefix(&format!("{}:", Head::Blueprint));
            name.is_none_or(|name| !added.iter().any(|added| added == name))
        };
        Self {
            blueprints: known.to_vec(),
            action_space: action_space_hash(&self.slots, known),
            excluded: self
                .excluded
                .iter()
                .filter(|choice| is_known(choice))
                .cloned()
                .collect(),
            ..self.clone()
        }
    }

    /// Notes values that no policy can use for decisions.
    fn note_nonfinite(&self, diffs: &mut Differences) {
        if !(0.0..=1.0).contains(&self.floor_scale) {
            diffs.note(format!(
                "floor scale: saved {}, which is not from 0 to 1",
                self.floor_scale
            ));
        }
        for (index, moments) in self.statistics.iter().enumerate() {
            if !moments.is_finite() {
                let RunningMoments { mean, var, .. } = moments;
                diffs.note(format!(
                    "normaliser statistic {index}: mean {mean} and variance {var} aren't valid"
                ));
            }
        }
    }
}

/// SHA-256 of the lines `head:member`, in order.
pub fn action_space_hash(slots: &[String], blueprints: &[String]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for head in Head::ALL {
        let members = head.members(slots, blueprints);
        lines.extend(members.iter().map(|member| format!("{head}:{member}")));
    }
    sha256(lines.join("\n").as_bytes())
}

/// Writes weights and manifest into `folder`, which appears whole or not at all.
///
/// # Errors
/// A device error, or `Storage`.
pub fn save_policy(folder: &Path, manifest: &PolicyManifest, params: &PolicyParams) -> Result<(), PolicyError> {
    let weights: Vec<(String, Tensor)> = params.iter().map(|param| (param.name, param.tensor)).collect();
    let weights = encode_tensors(&weights)?;
    let manifest = PolicyManifest {
        weights: sha256(&weights),
        ..manifest.clone()
    };
    let text = to_ron(folder, &manifest)?;
    write_folder(
        folder,
        &[(WEIGHTS_FILE, &weights[..]), (MANIFEST_FILE, text.as_bytes())],
    )
}

/// Copies the saved weights into `params`, in place, and returns the saved manifest. Blueprints that were added after those
/// that the saved policy knows keep the rows that `params` were drawn with.
///
/// # Errors
/// `Storage` for files that can't be understood, `IncompatiblePolicy` with every difference from `running` and every
/// number that isn't finite. In both cases nothing has changed. A device error may leave some weights copied.
pub fn load_policy(
    folder: &SavedFolder,
    running: &PolicyManifest,
    params: &PolicyParams,
) -> Result<PolicyManifest, PolicyError> {
    let manifest = read_manifest(folder)?;
    let mut diffs = Differences::default();
    let known = manifest.blueprints.as_slice();
    let added = running.blueprints.strip_prefix(known).unwrap_or_default();
    match added.is_empty() {
        true => manifest.compare(running, &mut diffs),
        false => manifest.compare(&running.with_blueprints(known), &mut diffs),
    }
    manifest.note_nonfinite(&mut diffs);
    let rows = BlueprintRows {
        known: known.len(),
        all: known.len() + added.len(),
    };
    let sources = read_weights(folder, &manifest.weights, params, rows, &mut diffs)?;
    diffs.finish(folder.path())?;
    if !added.is_empty() {
        tracing::warn!(
            "the policy in {} has never seen the blueprints {}; their rows are drawn from the seed of the run",
            folder.path().display(),
            added.join(", ")
        );
    }
    let targets: Vec<Tensor> = params.iter().map(|param| param.tensor.shallow_clone()).collect();
    copy_all(&targets, &sources, false)?;
    Ok(manifest)
}

/// The manifest in the folder.
pub fn read_manifest(folder: &SavedFolder) -> Result<PolicyManifest, PolicyError> {
    folder.ron(MANIFEST_FILE)
}

/// The weights in the folder's file with the SHA-256 `hash`, in the order of `params`, on their device. Notes misfits in `diffs`.
fn read_weights(
    folder: &SavedFolder,
    hash: &String,
    params: &PolicyParams,
    rows: BlueprintRows,
    diffs: &mut Differences,
) -> Result<Vec<Tensor>, PolicyError> {
    let bytes = folder.file(WEIGHTS_FILE)?;
    diffs.compare("weights file", &sha256(bytes), hash);
    let saved = SafeTensors::deserialize(bytes).map_err(|error| storage(&folder.path().join(WEIGHTS_FILE), &error))?;
    let sources = match_weights(&saved, params, rows, diffs)?;
    Ok(catch(|| {
        let here = sources.iter().map(|source| source.to_device(params.device()));
        here.collect()
    })?)
}

/// The saved tensors in the order of `params`. Notes tensors that are missing, superfluous or of another shape.
fn match_weights(
    saved: &SafeTensors,
    params: &PolicyParams,
    rows: BlueprintRows,
    diffs: &mut Differences,
) -> Result<Vec<Tensor>, PolicyError> {
    let mut superfluous: BTreeSet<&str> = saved.names().into_iter().collect();
    let mut sources = Vec::new();
    for param in params.iter() {
        superfluous.remove(param.name.as_str());
        match saved.tensor(&param.name) {
            Err(_) => diffs.note(format!("weight {} is not in the file", param.name)),
            Ok(view) if view.dtype() != Dtype::F32 || !rows.fit(view.shape(), &shape_of(&param)) => {
                let found = (view.dtype(), view.shape().to_vec());
                diffs.compare(
                    &format!("weight {}", param.name),
                    &found,
                    &(Dtype::F32, shape_of(&param)),
                );
            }
            Ok(view) => {
                let values: Vec<f32> = view
                    .data()
                    .as_chunks()
                    .0
                    .iter()
                    .map(|&bytes| f32::from_le_bytes(bytes))
                    .collect();
                if !values.iter().all(|value| value.is_finite()) {
                    diffs.note(format!("weight {} holds values that are not finite", param.name));
                }
                let shape: Vec<i64> = view.shape().iter().map(|&size| size as i64).collect();
                sources.push(catch(|| {
                    rows.grown(&Tensor::from_slice(&values).view(shape.as_slice()), &param.tensor)
                })?);
            }
        }
    }
    for name in superfluous {
        diffs.note(format!("weight {name} doesn't belong to the running network"));
    }
    Ok(sources)
}

/// The number of blueprints that a saved policy knows, and the number that exist.
///
/// The first dimension of a weight has a row per blueprint, repeated for each slot or operation. In an embedding, it has one
/// more row at its end, for the empty slot.
#[derive(Clone, Copy)]
struct BlueprintRows {
    known: usize,
    all: usize,
}

impl BlueprintRows {
    /// Returns whether a saved weight of shape `saved` can become a running one of shape `running`.
    fn fit(self, saved: &[usize], running: &[usize]) -> bool {
        let (Some((&rows, rest)), Some((&all, others))) = (saved.split_first(), running.split_first()) else {
            return saved == running;
        };
        let is_embedding = (rows, all) == (self.known + 1, self.all + 1);
        let has_blocks = rows.is_multiple_of(self.known) && rows * self.all == all * self.known;
        rest == others && (rows == all || is_embedding || has_blocks)
    }

    /// Puts the rows of `saved` where their blueprints are in `running`. The other rows of `running` stay.
    fn grown(self, saved: &Tensor, running: &Tensor) -> Tensor {
        if saved.size() == running.size() {
            return saved.shallow_clone();
        }
        let (known, all) = (self.known as i64, self.all as i64);
        let grown = running.detach().to_device(Device::Cpu).copy();
        let (mut places, saved) = if saved.size()[0] == known + 1 {
            grown.narrow(0, all, 1).copy_(&saved.narrow(0, known, 1));
            (grown.narrow(0, 0, known), saved.narrow(0, 0, known))
        } else {
            let blocks = |tensor: &Tensor, rows| tensor.unflatten(0, [-1, rows]);
            (blocks(&grown, all).narrow(1, 0, known), blocks(saved, known))
        };
        places.copy_(&saved);
        grown
    }
}

fn shape_of(param: &PolicyParam) -> Vec<usize> {
    param.tensor.size().iter().map(|&size| size as usize).collect()
}
