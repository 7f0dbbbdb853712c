//! The folder `networks` of a run directory: one file per network, named by its round and env as people count them.

use std::io;
use std::path::{Path, PathBuf};

use crate::health::{AtPath, FileError};
use crate::network::{GrownNetwork, NetworkError};
use crate::run::size;
use crate::scenario::Keep;
use crate::storage;

/// Folder inside the run directory.
const FOLDER: &str = "networks";
const ENDING: &str = ".safetensors";

/// The networks that a run has kept.
pub struct NetworkShelf(PathBuf);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptFile {
    /// From 0.
    pub round: u32,
    /// Index in the run.
    pub env: u32,
    /// Its path.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

impl NetworkShelf {
    /// The folder of the run in `directory`, which need not have one.
    pub fn of(directory: &Path) -> Self {
        Self(directory.join(FOLDER))
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The networks in it, by round and env. A file of any other name isn't a network.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn list(&self) -> Result<Vec<KeptFile>, FileError> {
        let names = match storage::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names.at(&self.0)?,
        };
        let file = |name: &std::ffi::OsString| -> Option<KeptFile> {
            let stem = name.to_str()?.strip_suffix(ENDING)?;
            let (round, env) = stem.strip_prefix("round")?.split_once("-env")?;
            let path = self.0.join(name);
            Some(KeptFile {
                round: round.parse::<u32>().ok()?.checked_sub(1)?,
                env: env.parse().ok()?,
                bytes: path.metadata().ok()?.len(),
                path,
            })
        };
        let mut files: Vec<KeptFile> = names.iter().filter_map(file).collect();
        files.sort_unstable();
        Ok(files)
    }

    /// The best of all of them, as [`best_of`](Self::best_of) finds it. `None` if none can be read.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn best(&self) -> Result<Option<GrownNetwork>, FileError> {
        let best = Self::best_of(self.list()?).ok().flatten();
        Ok(best.map(|(_, network)| network))
    }

    /// The best of `files` by [`GrownNetwork::is_better_than`], and its path. Files that can't be read are skipped with a
    /// warning. `None` if there are no files.
    ///
    /// # Errors
    /// None can be read: why the first cannot.
    pub fn best_of(files: Vec<KeptFile>) -> Result<Option<(PathBuf, GrownNetwork)>, NetworkError> {
        let (mut best, mut failure) = (None::<(PathBuf, GrownNetwork)>, None);
        for KeptFile { path, .. } in files {
            match GrownNetwork::load(&path) {
                Ok(found) if best.as_ref().is_none_or(|(_, best)| found.is_better_than(best)) => {
                    best = Some((path, found));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "a kept network is skipped");
                    failure.get_or_insert(error);
                }
            }
        }
        match (best, failure) {
            (None, Some(failure)) => Err(failure),
            (best, _) => Ok(best),
        }
    }

    /// Puts a network there. If all would be larger than `most_bytes`, older ones are removed first, except `best`. If that isn't
    /// enough, the network isn't kept, unless it is the best.
    ///
    /// # Errors
    /// The folder or a file cannot be written.
    pub fn put(
        &self,
        network: &GrownNetwork,
        most_bytes: u64,
        best: Option<&GrownNetwork>,
    ) -> Result<(), NetworkError> {
        // In a run directory that is there: one that was taken away does not come back as a stump.
        match storage::create_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.and_then(|()| storage::sync_folder_of(&self.0)).at(&self.0)?,
        }
        let path = self.path_of(network.origin.round, network.origin.env);
        let mut there = self.list()?;
        there.retain(|file| file.path != path);
        let mut total = there.iter().map(|file| file.bytes).sum::<u64>() + network.bytes();
        let place_of_best = best.map(|best| (best.origin.round, best.origin.env));
        let is_best = |round, env| place_of_best == Some((round, env));
        let older = |file: &&KeptFile| file.round < network.origin.round && !is_best(file.round, file.env);
        for file in there.iter().filter(older) {
            if total <= most_bytes {
                break;
            }
            storage::remove_file(&file.path).at(&file.path)?;
            total -= file.bytes;
        }
        if total > most_bytes && !is_best(network.origin.round, network.origin.env) {
            tracing::warn!(
                "{} is not kept: kept networks would take more than {}",
                path.display(),
                size(most_bytes.into())
            );
            return Ok(());
        }
        network.save(&path)
    }

    /// Removes those of rounds from `round` on, which are about to be played again.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn forget_from(&self, round: u32) -> Result<(), FileError> {
        for file in self.list()?.into_iter().filter(|file| file.round >= round) {
            storage::remove_file(&file.path).at(&file.path)?;
        }
        Ok(())
    }

    /// Removes the networks that were kept as the last of a run that continues with `round`: those of the round before it except
    /// the best, or all of them if `keep` says to keep only the last.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn forget_last_before(&self, round: u32, keep: Keep) -> Result<(), FileError> {
        let mut outdated = self.list()?;
        outdated.retain(|file| file.round + 1 == round);
        match keep {
            Keep::Last => {}
            Keep::Best => {
                let best = Self::best_of(outdated.clone()).ok().flatten();
                outdated.retain(|file| best.as_ref().is_some_and(|(path, _)| *path != file.path));
            }
            Keep::All | Keep::None => outdated.clear(),
        }
        for file in outdated {
            storage::remove_file(&file.path).at(&file.path)?;
        }
        Ok(())
    }

    /// The path of the network of an env and a round, from 0, whether it exists or not.
    pub fn path_of(&self, round: u32, env: u32) -> PathBuf {
        self.0.join(format!("round{}-env{env}{ENDING}", u64::from(round) + 1))
    }
}
