//! A set of trajectories: a folder `NAME.traj` with shards of whole segments and a manifest that names them.
//!
//! A shard is written whole under its name before the manifest names it, so that a killed writer leaves a readable set. Files
//! that the manifest does not name aren't part of it.

use std::path::{Path, PathBuf};

use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use super::segment::{Segment, Sizes};
use crate::files::counted;
use crate::hash::sha256;
use crate::health::{AtPath, FileError};
use crate::reward::PARTS;
use crate::storage;
use crate::telemetry::BigInteger;

/// The set in the folder of a run that records one.
pub const FOLDER: &str = "episodes.traj";
/// The manifest in the folder of a set.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Version of the format.
const FORMAT: u32 = 1;

/// A file of segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Name of the shard.
    pub file: String,
    /// Round of all of its segments, from 0.
    pub round: u32,
    /// Segments in it.
    pub segments: usize,
    /// Steps of all segments.
    pub steps: usize,
    /// SHA-256 of the file, in lower-case hexadecimal.
    pub sha256: String,
}

/// Origin and form of a set, and its shards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the format.
    pub format: u32,
    /// Version of the engine that wrote it.
    pub engine: String,
    /// Name of the scenario.
    pub scenario: String,
    /// SHA-256 of the scenario with everything resolved.
    pub scenario_sha256: String,
    /// Name of the task.
    pub task: String,
    /// The host, as a scenario writes it.
    pub host: String,
    /// The controller that decided.
    pub controller: String,
    /// Seed of the run.
    pub seed: BigInteger,
    /// Steps of an episode.
    pub max_steps: u32,
    /// Discount of the rewards.
    pub gamma: f64,
    /// The reward, as a scenario writes it.
    pub reward: String,
    /// Price that the rent charges for as many parameters as the host has, percentage points; `None` for other rents.
    pub price: Option<f64>,
    /// Names of the elements of an observation.
    pub observation: Vec<String>,
    /// Slots, in order.
    pub slots: Vec<String>,
    /// Blueprints by index; empty where there is none.
    pub blueprints: Vec<String>,
    /// Operations by index.
    pub operations: Vec<String>,
    /// Heads of an action in the order of its columns, with the number of their members.
    pub heads: Vec<(String, usize)>,
    /// Elements of the masks of a step.
    pub masks: usize,
    /// Columns of `parts`.
    pub parts: Vec<String>,
    /// The shards, in order of their rounds.
    pub shards: Vec<Shard>,
}

impl Manifest {
    /// Widths of a step's columns.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            observation: self.observation.len(),
            slots: self.slots.len(),
            blueprints: self.blueprints.len(),
            masks: self.masks,
        }
    }

    /// The first field in which the steps of `other` have another form, with what both say.
    pub fn misfit(&self, other: &Self) -> Option<Misfit> {
        let heads =
            |set: &Self| -> Vec<String> { set.heads.iter().map(|(head, size)| format!("{head} {size}")).collect() };
        Misfit::of([
            ("slots", &self.slots, &other.slots),
            ("blueprints", &self.blueprints, &other.blueprints),
            ("operations", &self.operations, &other.operations),
            ("heads", &heads(self), &heads(other)),
            ("observation", &self.observation, &other.observation),
            ("parts", &self.parts, &other.parts),
        ])
    }

    /// Version and columns of `parts` of the sets that this version writes.
    pub fn format() -> (u32, Vec<String>) {
        (FORMAT, PARTS.map(String::from).into())
    }
}

/// A list of names in which two sets, or a set and a run, differ: they cannot be learnt from together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("in `{field}` it has {found}, expected {expected}")]
pub struct Misfit {
    /// Field of the manifest.
    pub field: &'static str,
    /// The first name that differs.
    pub found: String,
    /// The name at that place in the other.
    pub expected: String,
}

impl Misfit {
    /// The first field whose names differ, each with the found and the expected one.
    pub fn of<const N: usize>(fields: [(&'static str, &[String], &[String]); N]) -> Option<Self> {
        fields.into_iter().find_map(|(field, found, expected)| {
            let differs = |&at: &usize| found.get(at) != expected.get(at);
            let at = (0..found.len().max(expected.len())).find(differs)?;
            let said = |names: &[String]| match names.get(at) {
                Some(name) => format!("`{name}` in place {}", at + 1),
                None => format!("{} names", names.len()),
            };
            Some(Self {
                field,
                found: said(found),
                expected: said(expected),
            })
        })
    }
}

/// The reason why trajectories cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TrajectoryError {
    #[error("{0} isn't a set of trajectories: it has no {MANIFEST_FILE}")]
    None(PathBuf),
    #[error("{path}: {why}")]
    Manifest { path: PathBuf, why: String },
    #[error("{0}: format {1}, but this version reads {FORMAT}")]
    Format(PathBuf, u32),
    #[error("{path}: {misfit}")]
    Form { path: PathBuf, misfit: Misfit },
    #[error("{0}: its SHA-256 differs from the manifest's: it was changed, or copied in part")]
    Hash(PathBuf),
    #[error("{path}: {why}")]
    Shard { path: PathBuf, why: String },
    #[error("{path}: `{tensor}` {why}")]
    Tensor {
        path: PathBuf,
        tensor: &'static str,
        why: String,
    },
    #[error(transparent)]
    File(#[from] FileError),
}

/// A set on disk.
#[derive(Clone, Debug)]
pub struct TrajectorySet {
    folder: PathBuf,
    /// Origin, form and shards of the set.
    pub manifest: Manifest,
}

impl TrajectorySet {
    /// The set in a folder; for a run's folder the one that it has recorded.
    ///
    /// # Errors
    /// A set that is missing, or whose manifest this version can't read; shards are not looked at.
    pub fn open(place: &Path) -> Result<Self, TrajectoryError> {
        let own = place.join(FOLDER);
        let folder = if own.is_dir() { own } else { place.to_path_buf() };
        let path = folder.join(MANIFEST_FILE);
        let text = match crate::files::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(TrajectoryError::None(folder)),
            text => text.at(&path)?,
        };
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let unreadable = |error: serde_json::Error| TrajectoryError::Manifest {
            path: path.clone(),
            why: error.to_string(),
        };
        let Version { format } = serde_json::from_slice(&text).map_err(unreadable)?;
        if format != FORMAT {
            return Err(TrajectoryError::Format(path, format));
        }
        let manifest: Manifest = serde_json::from_slice(&text).map_err(unreadable)?;
        let (_, parts) = Manifest::format();
        if let Some(misfit) = Misfit::of([("parts", &manifest.parts, &parts)]) {
            return Err(TrajectoryError::Form { path, misfit });
        }
        Ok(Self { folder, manifest })
    }

    /// The segments of a shard, checked against the manifest.
    ///
    /// # Errors
    /// A file that is missing, changed, or not as the manifest says.
    pub fn read(&self, shard: &Shard) -> Result<Vec<Segment>, TrajectoryError> {
        let path = self.folder.join(&shard.file);
        let bytes = crate::files::read(&path).at(&path)?;
        if sha256(&bytes) != shard.sha256 {
            return Err(TrajectoryError::Hash(path));
        }
        let unreadable = |why: String| TrajectoryError::Shard {
            path: path.clone(),
            why,
        };
        let file = SafeTensors::deserialize(&bytes).map_err(|error| unreadable(error.to_string()))?;
        let segments =
            Segment::decode(&file, self.manifest.sizes()).map_err(|(tensor, why)| TrajectoryError::Tensor {
                path: path.clone(),
                tensor,
                why,
            })?;
        let found = (segments.len(), segments.iter().map(Segment::len).sum::<usize>());
        if found != (shard.segments, shard.steps) {
            let (segments, steps) = (counted(found.0, "segment"), counted(found.1, "step"));
            return Err(unreadable(format!(
                "{segments} with {steps}, but the manifest says {} with {}",
                shard.segments, shard.steps
            )));
        }
        Ok(segments)
    }

    /// A set in `folder` that continues with `round`: its data of earlier rounds stay.
    ///
    /// # Errors
    /// A set of another form is there, or one that cannot be read; the folder cannot be written.
    pub fn begin(folder: PathBuf, manifest: Manifest, round: u32) -> Result<Self, TrajectoryError> {
        let mut set = Self { folder, manifest };
        match Self::open(&set.folder) {
            Ok(earlier) => {
                if let Some(misfit) = earlier.manifest.misfit(&set.manifest) {
                    let path = set.folder.join(MANIFEST_FILE);
                    return Err(TrajectoryError::Form { path, misfit });
                }
                set.manifest.shards = earlier.manifest.shards;
                set.manifest.shards.retain(|shard| shard.round < round);
            }
            Err(TrajectoryError::None(_)) => {}
            Err(error) => return Err(error),
        }
        let made = storage::create_dir_all(&set.folder).and_then(|()| storage::sync_folder_of(&set.folder));
        made.at(&set.folder)?;
        set.write_manifest()?;
        Ok(set)
    }

    /// Puts the segments of a round there, in place of any segments that it has.
    ///
    /// # Errors
    /// A file that cannot be written; its former content is whole.
    pub fn put(&mut self, round: u32, segments: &[Segment]) -> Result<(), TrajectoryError> {
        let file = format!("round-{round:06}.safetensors");
        let path = self.folder.join(&file);
        let bytes = Segment::encode(segments, self.manifest.sizes()).map_err(|error| TrajectoryError::Shard {
            path: path.clone(),
            why: error.to_string(),
        })?;
        storage::replace_synced(&path, &bytes).at(&path)?;
        self.manifest.shards.retain(|shard| shard.round != round);
        self.manifest.shards.push(Shard {
            file,
            round,
            segments: segments.len(),
            steps: segments.iter().map(Segment::len).sum(),
            sha256: sha256(&bytes),
        });
        self.write_manifest()
    }

    fn write_manifest(&self) -> Result<(), TrajectoryError> {
        let path = self.folder.join(MANIFEST_FILE);
        let text = serde_json::to_vec_pretty(&self.manifest).map_err(|error| TrajectoryError::Manifest {
            path: path.clone(),
            why: error.to_string(),
        })?;
        Ok(storage::replace_synced(&path, &text).at(&path)?)
    }
}

#[cfg(test)]
mod tests;
