//! The policy that a run has come to, found in its newest checkpoint, and the scenario that it decides in.

use std::path::{Path, PathBuf};

use super::shelf::POLICY_FOLDER;
use super::{CheckpointError, CheckpointName, Checkpoints};
use crate::controller::{MANIFEST_FILE, PolicyError, SavedFolder, WEIGHTS_FILE};
use crate::record::{RunDirectory, RunDirectoryError};

/// A saved policy and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenPolicy {
    /// Weights and manifest, read when the policy was found: a run that trains on may have thrown its checkpoint away since.
    pub saved: SavedFolder,
    /// The run that it was trained in; `None` for a policy on its own.
    pub origin: Option<PolicyOrigin>,
}

/// The run behind a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyOrigin {
    /// Its scenario with every default and override.
    pub scenario: PathBuf,
    /// [`DataSet::hash`](crate::data::DataSet::hash) of what it was trained on.
    pub data_hash: String,
    /// Rounds that the policy had seen.
    pub rounds: u32,
}

/// Why there is no policy to be had.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum FrozenPolicyError {
    #[error("{0} is neither a run directory (it has no resolved.ron) nor a saved policy (it has no {MANIFEST_FILE})")]
    NotARun(PathBuf),
    #[error("the run {0} has no checkpoint yet; a policy can be played after its first one")]
    NoCheckpoint(PathBuf),
    #[error("the checkpoint {0} holds no policy that learns; only a run whose controller learns can be played")]
    NothingLearned(PathBuf),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Directory(#[from] RunDirectoryError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl FrozenPolicy {
    /// Finds the policy of a run directory, or in a folder of its own.
    ///
    /// # Errors
    /// Nothing of that kind, or a run that has no learned policy yet.
    pub fn find(place: &Path) -> Result<Self, FrozenPolicyError> {
        if holds_policy(place) {
            return Ok(Self {
                saved: SavedFolder::read(place)?,
                origin: None,
            });
        }
        if !RunDirectory::is_at(place) {
            return Err(FrozenPolicyError::NotARun(place.into()));
        }
        let directory = RunDirectory::open(place)?;
        let (checkpoint, progress) = Checkpoints::of(directory.path())
            .find(CheckpointName::Last)
            .map_err(|error| match error {
                CheckpointError::None(_) => FrozenPolicyError::NoCheckpoint(place.into()),
                other => other.into(),
            })?;
        let folder = checkpoint.join(POLICY_FOLDER);
        if !holds_policy(&folder) {
            return Err(FrozenPolicyError::NothingLearned(checkpoint));
        }
        Ok(Self {
            saved: SavedFolder::read(&folder)?,
            origin: Some(PolicyOrigin {
                scenario: directory.resolved_path(),
                data_hash: progress.data_hash,
                rounds: progress.next_round,
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
mod tests {
    use std::fs;

    use super::*;
    use crate::checkpoint::shelf::tests::progress;

    fn save_policy(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("policy.ron"), "()").unwrap();
        fs::write(folder.join("policy.safetensors"), "").unwrap();
    }

    fn run_directory(root: &Path) {
        fs::write(root.join("resolved.ron"), "()").unwrap();
    }

    #[test]
    fn a_run_s_policy_is_the_one_of_its_newest_checkpoint() {
        let root = tempfile::tempdir().unwrap();
        run_directory(root.path());
        let shelf = Checkpoints::of(root.path());
        for rounds in [9, 10] {
            let save = |folder: &Path| {
                save_policy(&folder.join("policy"));
                Ok(())
            };
            shelf.put(&progress(rounds, None), save).unwrap();
        }
        save_policy(&root.path().join("checkpoints/.round-000011.new/policy"));

        let found = FrozenPolicy::find(root.path()).unwrap();

        assert!(found.saved.path().ends_with("checkpoints/round-000010/policy"));
        let origin = found.origin.unwrap();
        assert_eq!(origin.rounds, 10);
        assert_eq!(origin.data_hash, "ef01");
    }

    #[test]
    fn a_policy_may_stand_on_its_own() {
        let root = tempfile::tempdir().unwrap();
        save_policy(root.path());

        let found = FrozenPolicy::find(root.path()).unwrap();

        assert_eq!((found.saved.path(), found.origin), (root.path(), None));
    }

    #[test]
    fn what_is_missing_is_named() {
        let root = tempfile::tempdir().unwrap();
        let why = |path: &Path| FrozenPolicy::find(path).unwrap_err().to_string();

        assert!(why(root.path()).contains("neither a run directory (it has no resolved.ron)"));
        run_directory(root.path());
        assert!(why(root.path()).contains("has no checkpoint yet"));
        let shelf = Checkpoints::of(root.path());
        shelf.put(&progress(1, None), |_| Ok(())).unwrap();
        assert!(why(root.path()).contains("holds no policy that learns"));
    }
}
