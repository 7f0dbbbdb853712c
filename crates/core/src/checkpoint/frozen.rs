//! The policy of a run, from one of its checkpoints, and the scenario that it decides in.

use std::path::{Path, PathBuf};

use super::shelf::POLICY_FOLDER;
use super::{CheckpointError, CheckpointName, Checkpoints};
use crate::actions::PolicyError;
use crate::controller::{MANIFEST_FILE, SavedFolder, WEIGHTS_FILE};
use crate::record::{RunDirectory, RunDirectoryError};

/// A saved policy and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenPolicy {
    /// Weights and manifest, read when the policy was found, because a run that trains on may have deleted its checkpoint since.
    /// `None` for a run whose controller doesn't learn.
    pub saved: Option<SavedFolder>,
    /// The run that it was trained in, or `None` for a policy on its own.
    pub origin: Option<PolicyOrigin>,
}

/// The run that a policy is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyOrigin {
    /// Its scenario with every default and override.
    pub scenario: PathBuf,
    /// [`TaskData::hash`](crate::data::TaskData::hash) of its training data.
    pub data_hash: String,
    /// Rounds that the policy had seen.
    pub rounds: u32,
    /// Rounds that the run has played by now. Later rounds are new to every policy of its checkpoints.
    pub rounds_played: u32,
}

/// The reason why no policy can be loaded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum FrozenPolicyError {
    #[error("{0} is neither a run directory (it has no resolved.ron) nor a saved policy (it has no {MANIFEST_FILE})")]
    NotARun(PathBuf),
    #[error("the run {0} has no checkpoint yet; a policy can be played after its first one")]
    NoCheckpoint(PathBuf),
    #[error("{place} is a policy without its run, so there is no checkpoint `{asked}` to choose")]
    OnItsOwn { place: PathBuf, asked: CheckpointName },
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Directory(#[from] RunDirectoryError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl FrozenPolicy {
    /// Finds the policy of a run directory, in its checkpoint `name`, or in the folder of a saved policy.
    ///
    /// # Errors
    /// If there is nothing of that kind, the run has no checkpoint yet, or none has that name. The message lists all.
    pub fn find(place: &Path, name: CheckpointName) -> Result<Self, FrozenPolicyError> {
        if holds_policy(place) {
            if name != CheckpointName::Last {
                return Err(FrozenPolicyError::OnItsOwn {
                    place: place.into(),
                    asked: name,
                });
            }
            return Ok(Self {
                saved: Some(SavedFolder::read(place)?),
                origin: None,
            });
        }
        if !RunDirectory::is_at(place) {
            return Err(FrozenPolicyError::NotARun(place.into()));
        }
        let directory = RunDirectory::open(place)?;
        let shelf = Checkpoints::of(directory.path());
        let named = |error| match error {
            CheckpointError::None(_) => FrozenPolicyError::NoCheckpoint(place.into()),
            other => other.into(),
        };
        let (checkpoint, progress) = shelf.find(name).map_err(named)?;
        let rounds_played = shelf
            .list()
            .map_err(CheckpointError::from)?
            .first()
            .map_or(0, |newest| newest.round)
            .max(progress.next_round);
        let folder = checkpoint.join(POLICY_FOLDER);
        let saved = holds_policy(&folder).then(|| SavedFolder::read(&folder)).transpose()?;
        Ok(Self {
            saved,
            origin: Some(PolicyOrigin {
                scenario: directory.resolved_path(),
                data_hash: progress.data_hash,
                rounds: progress.next_round,
                rounds_played,
            }),
        })
    }
}

fn holds_policy(folder: &Path) -> bool {
    [MANIFEST_FILE, WEIGHTS_FILE]
        .iter()
        .all(|file| folder.join(file).is_file())
}

#[cfg(test)]
mod tests;
