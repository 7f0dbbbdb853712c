//! The folder `checkpoints` of a run directory. It receives whole checkpoints, finds them again, and deletes them when
//! newer ones have taken their place.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::checksums::{self, ChecksumError};
use super::id::{CheckpointId, PREFIX};
use crate::files::{self, RonError, counted, read_ron};
use crate::health::{AtPath, Failure, FileError};
use crate::record::{bytes_below, point_at};
use crate::storage::{self, sync_folder, sync_folder_of, write_synced};
use crate::telemetry::{EventsMark, is_default};

/// Folder inside the run directory.
const FOLDER: &str = "checkpoints";
/// Folder of the controller inside a checkpoint, with everything that inference needs.
pub(super) const POLICY_FOLDER: &str = "policy";
const PROGRESS_FILE: &str = "run.ron";
/// The number of newest checkpoints between rounds that stay, with the best one. That is enough to have one left if the newest is
/// damaged, and to go a little way back with a learner that goes astray.
pub const KEEP_LAST: usize = 3;

/// A rolling accuracy, in percent, and the checkpoint that was written with it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BestCheckpoint {
    /// The round that a resume from it begins with.
    pub next_round: u32,
    /// Mean validation accuracy of its round, percent.
    pub accuracy: f64,
}

/// The progress of a run: `run.ron`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// [`Self::FORMAT`] of the engine that wrote it.
    pub format: u32,
    /// Version that wrote it.
    pub engine: String,
    /// blake3 of the run's `resolved.ron`.
    pub scenario_hash: String,
    /// [`TaskData::hash`](crate::data::TaskData::hash) of the data that the run has learnt from.
    pub data_hash: String,
    /// [`StartingWeights::hash`](crate::env::StartingWeights::hash) of the weights that its episodes start from.
    /// `None` if they are drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights_hash: Option<String>,
    /// The total number of rounds of the run. A resumed run may have more.
    pub rounds: u32,
    /// The round to be played next. The same number of rounds is finished.
    pub next_round: u32,
    /// Steps of this round that have been played. 0 if it hasn't begun.
    #[serde(default, skip_serializing_if = "is_default")]
    pub step: u32,
    /// Events with smaller numbers belong to the played part of the run.
    pub next_seq: u64,
    /// Extent of the record up to there. `None` if it couldn't be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<EventsMark>,
    /// Envs of the run.
    pub n_envs: usize,
    /// The slots in policy order.
    pub slots: Vec<String>,
    /// Name of the controller.
    pub controller: String,
    /// Fields that were changed when the run was resumed, as `path=value`. `rounds` is separate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Mean final accuracy of each round, percent.
    pub history: Vec<f64>,
    /// The best checkpoint so far, or `None` before the first round.
    pub best: Option<BestCheckpoint>,
}

impl Progress {
    /// Form of checkpoints that this engine writes and reads.
    pub const FORMAT: u32 = 1;

    /// Position of its checkpoint in the run.
    pub const fn id(&self) -> CheckpointId {
        CheckpointId {
            round: self.next_round,
            step: self.step,
        }
    }
}

/// One of a run's checkpoints, as a user names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointName {
    /// The newest that can be read, including one inside a round.
    #[default]
    Last,
    /// The one with the best rolling accuracy.
    Best,
    /// The one after N rounds.
    Round(u32),
}

impl fmt::Display for CheckpointName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Last => f.write_str("last"),
            Self::Best => f.write_str("best"),
            Self::Round(round) => write!(f, "{round}"),
        }
    }
}

impl FromStr for CheckpointName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "last" => Ok(Self::Last),
            "best" => Ok(Self::Best),
            number => number
                .parse()
                .map(Self::Round)
                .map_err(|_| "expected `last`, `best` or the number of rounds played by then".into()),
        }
    }
}

/// The reason why a checkpoint can't be written, found or read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum CheckpointError {
    #[error("{0} holds no checkpoint")]
    None(PathBuf),
    #[error(
        "{shelf} holds no best checkpoint: none was written after a round, or the run injects faults; it holds those \
         after {} rounds",
        list(.there)
    )]
    NoBest { shelf: PathBuf, there: Vec<u32> },
    #[error("{shelf} holds no checkpoint after {}; it holds those after {}", counted(.asked, "round"), list(.there))]
    NoSuchRound {
        shelf: PathBuf,
        asked: u32,
        there: Vec<u32>,
    },
    #[error("checkpoint {0}")]
    File(#[from] FileError),
    #[error("checkpoint {path}: {failure}")]
    Content { path: PathBuf, failure: Failure },
    #[error(
        "checkpoint {path} has format {found}; this version reads format {}",
        Progress::FORMAT
    )]
    Format { path: PathBuf, found: u32 },
    #[error("checkpoint {0}; resume from another one with --from")]
    Checksum(ChecksumError),
}

impl From<ChecksumError> for CheckpointError {
    fn from(error: ChecksumError) -> Self {
        match error {
            ChecksumError::File(error) => error.into(),
            damage => Self::Checksum(damage),
        }
    }
}

/// The checkpoints of one run.
#[derive(Clone, Debug)]
pub struct Checkpoints(PathBuf);

impl Checkpoints {
    /// Opens the checkpoints of a run.
    pub fn of(run_directory: &Path) -> Self {
        Self(run_directory.join(FOLDER))
    }

    /// The path of a checkpoint, relative to the run directory.
    pub fn relative_path(id: CheckpointId) -> String {
        format!("{FOLDER}/{}", id.name())
    }

    /// Puts a checkpoint in its place, filled by `fill`, and returns its size in bytes. It retries a failure once.
    /// The checkpoint has another name until the last moment, so a process killed at any time leaves it whole or absent.
    ///
    /// # Errors
    /// A file that can't be written, or an error of `fill`. Older checkpoints are unchanged, and nothing is left of this one,
    /// because it would take the room of later ones on a full disk. Or the checkpoint is in place, but its name may not survive
    /// a power cut.
    pub fn put(
        &self,
        progress: &Progress,
        mut fill: impl FnMut(&Path) -> Result<(), Failure>,
    ) -> Result<u64, CheckpointError> {
        let size = self.fill_and_name(progress, &mut fill).or_else(|error| {
            tracing::warn!(%error, "a checkpoint could not be written; trying once more");
            self.fill_and_name(progress, &mut fill)
        })?;
        // No second try: writing the files again wouldn't make the folder's entry durable.
        sync_folder(&self.0).at(&self.0)?;
        Ok(size)
    }

    fn fill_and_name(
        &self,
        progress: &Progress,
        fill: impl FnMut(&Path) -> Result<(), Failure>,
    ) -> Result<u64, CheckpointError> {
        // A run directory that was deleted must not come back as a stump.
        match storage::create_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.and_then(|()| sync_folder_of(&self.0)).at(&self.0)?,
        }
        let name = progress.id().name();
        let fresh = self.0.join(format!(".{name}.new"));
        let written = fill_folder(&fresh, progress, fill).and_then(|size| {
            self.give_name(&fresh, &name).at(&self.0.join(&name))?;
            Ok(size)
        });
        if written.is_err()
            && let Err(error) = remove(&fresh)
        {
            tracing::warn!(%error, folder = %fresh.display(), "the rest of a failed checkpoint could not be removed");
        }
        written
    }

    /// Removes an earlier checkpoint of that name once the new one has it. It was left by a run that was resumed from an older
    /// one, or by an attempt that couldn't synchronise the name.
    fn give_name(&self, fresh: &Path, name: &str) -> io::Result<()> {
        let (place, old) = self.place_and_old(name);
        remove(&old)?;
        if place.exists() {
            storage::rename(&place, &old)?;
        }
        storage::rename(fresh, &place).inspect_err(|_| {
            // If there was no folder, none has to be restored.
            let _ = storage::rename(&old, &place);
        })?;
        if let Err(error) = remove(&old) {
            tracing::warn!(%error, checkpoint = name, "the earlier checkpoint of this name could not be removed");
        }
        Ok(())
    }

    /// Points `last` and `best` at their checkpoints. Of the checkpoints up to `progress` it deletes all but the newest
    /// [`KEEP_LAST`] between rounds and the best, or the target of `best` if the checkpoint of `progress` isn't there. One
    /// inside a round stays until there is a newer one of any kind. Anything that can't be removed is left, as it does no harm.
    pub fn tidy(&self, progress: &Progress) {
        let there = match self.list() {
            Ok(there) => there,
            Err(error) => {
                tracing::warn!(%error, "old checkpoints stay");
                return;
            }
        };
        let newest = there.first().copied().unwrap_or(progress.id());
        point_at(&self.0, "last", &newest.name());
        let best = progress.best.map(|best| CheckpointId::before(best.next_round));
        if let Some(best) = best.filter(|best| there.contains(best)) {
            point_at(&self.0, "best", &best.name());
        }
        let best = [
            best.map(|best| best.name().into()),
            // A file system without links doesn't have any to follow.
            fs::read_link(self.0.join("best")).ok(),
        ];
        let past = there.into_iter().filter(|&id| id <= progress.id());
        let (inside, between): (Vec<_>, Vec<_>) = past.partition(|id| id.is_inside_round());
        let outdated = inside.into_iter().filter(|&id| id < newest);
        for id in between.into_iter().skip(KEEP_LAST).chain(outdated) {
            let name = id.name();
            if !best.contains(&Some(PathBuf::from(&name)))
                && let Err(error) = self.discard(&name)
            {
                tracing::warn!(%error, checkpoint = name, "an old checkpoint could not be removed");
            }
        }
    }

    /// The checkpoint of that name and the run's progress in it.
    ///
    /// # Errors
    /// If no checkpoint has that name, or it can't be read.
    pub fn find(&self, name: CheckpointName) -> Result<(PathBuf, Progress), CheckpointError> {
        let round = match name {
            CheckpointName::Last => return self.newest(),
            CheckpointName::Best => self.newest()?.1.best.map(|best| best.next_round),
            CheckpointName::Round(round) => Some(round),
        };
        let (shelf, there) = (self.0.clone(), between_rounds(self.list()?));
        if there.is_empty() {
            return Err(CheckpointError::None(shelf));
        }
        let Some(round) = round else {
            return Err(CheckpointError::NoBest { shelf, there });
        };
        if !there.contains(&round) {
            return Err(CheckpointError::NoSuchRound {
                shelf,
                asked: round,
                there,
            });
        }
        self.open(CheckpointId::before(round))
    }

    /// The checkpoint at that position, and the run's progress in it.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn open(&self, id: CheckpointId) -> Result<(PathBuf, Progress), CheckpointError> {
        let folder = self.0.join(id.name());
        let progress = read(&folder)?;
        Ok((folder, progress))
    }

    /// Removes unfinished work of a killed process: folders and links under the temporary names that they have until they
    /// are complete, or while they are deleted. Only the process that has claimed the run may call it.
    pub fn sweep(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_leftover = name
                .to_str()
                .is_some_and(|name| name.starts_with('.') && name.contains(PREFIX));
            if !is_leftover {
                continue;
            }
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let removed = if is_folder {
                storage::remove_dir_all(&path)
            } else {
                storage::remove_file(&path)
            };
            if let Err(error) = removed {
                tracing::warn!(%error, path = %path.display(), "a leftover of an earlier process could not be removed");
            }
        }
    }

    /// Moves the checkpoints after `id` into `discarded-{n}/`, because the run resumes at `id` and plays those rounds
    /// again. The newest is moved last, so it stays the run's current checkpoint until all are moved.
    ///
    /// # Errors
    /// A folder that cannot be made or moved.
    pub fn set_aside_after(&self, id: CheckpointId) -> Result<(), CheckpointError> {
        let later: Vec<CheckpointId> = self.list()?.into_iter().filter(|&later| later > id).collect();
        if later.is_empty() {
            return Ok(());
        }
        let place = (1_u32..)
            .map(|n| self.0.join(format!("discarded-{n}")))
            .find(|place| !place.exists())
            .unwrap_or_else(|| self.0.join("discarded"));
        storage::create_dir_all(&place).at(&place)?;
        for later in later.into_iter().rev() {
            let name = later.name();
            storage::rename(&self.0.join(&name), &place.join(&name)).at(&place)?;
        }
        tracing::warn!(folder = %place.display(), "later checkpoints were set aside, as their rounds are played again; they can be removed");
        // The target is synchronised first, so that a power cut can't leave them in neither place.
        sync_folder(&place).at(&place)?;
        Ok(sync_folder(&self.0).at(&self.0)?)
    }

    /// The newest checkpoint from before `round`.
    pub fn newest_until(&self, round: u32) -> Option<u32> {
        self.rounds().into_iter().find(|&next_round| next_round <= round)
    }

    /// Returns whether the checkpoint before `next_round` exists.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn has(&self, next_round: u32) -> Result<bool, FileError> {
        Ok(self.list()?.contains(&CheckpointId::before(next_round)))
    }

    /// The newest undamaged checkpoint. Damaged ones are skipped with a warning.
    ///
    /// # Errors
    /// If there is none, or the damage of the newest if none is sound.
    fn newest(&self) -> Result<(PathBuf, Progress), CheckpointError> {
        let mut first = None;
        for id in self.list()? {
            match self.open(id) {
                Ok(found) => return Ok(found),
                Err(error) => {
                    tracing::warn!(%error, "a checkpoint is skipped");
                    first.get_or_insert(error);
                }
            }
        }
        Err(first.unwrap_or_else(|| CheckpointError::None(self.0.clone())))
    }

    /// Files in a checkpoint that it doesn't list, so that their content is unknown.
    ///
    /// # Errors
    /// A folder or a list that cannot be read.
    pub fn unlisted(&self, id: CheckpointId) -> Result<Vec<String>, FileError> {
        let folder = self.0.join(id.name());
        checksums::unlisted(&folder).at(&folder)
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Rounds with a checkpoint before them, newest first, as in [`Self::ids`].
    pub fn rounds(&self) -> Vec<u32> {
        between_rounds(self.ids())
    }

    /// [`Self::list`] for callers that only look. Empty for a folder that can't be read.
    pub fn ids(&self) -> Vec<CheckpointId> {
        self.list().unwrap_or_default()
    }

    /// Positions of the checkpoints, newest first. Anything with another name isn't a checkpoint. A missing folder holds none.
    ///
    /// # Errors
    /// A folder that can't be read, because its content is then unknown.
    pub fn list(&self) -> Result<Vec<CheckpointId>, FileError> {
        let names = match storage::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names.at(&self.0)?,
        };
        let mut ids: Vec<CheckpointId> = names
            .iter()
            .filter_map(|name| CheckpointId::of_name(name.to_str()?))
            .collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// Deletes a checkpoint. It takes the name away first, because half a checkpoint must not look like one.
    fn discard(&self, name: &str) -> io::Result<()> {
        let (place, old) = self.place_and_old(name);
        if !place.exists() {
            return Ok(());
        }
        remove(&old)?;
        storage::rename(&place, &old)?;
        remove(&old)
    }

    /// The path of a checkpoint of that name, and its path while it is deleted.
    fn place_and_old(&self, name: &str) -> (PathBuf, PathBuf) {
        (self.0.join(name), self.0.join(format!(".{name}.old")))
    }
}

/// Writes all of a checkpoint into a new folder and returns its size in bytes.
fn fill_folder(
    folder: &Path,
    progress: &Progress,
    mut fill: impl FnMut(&Path) -> Result<(), Failure>,
) -> Result<u64, CheckpointError> {
    remove(folder).at(folder)?;
    storage::create_dir(folder).at(folder)?;
    let content = |failure| CheckpointError::Content {
        path: folder.into(),
        failure,
    };
    fill(folder).map_err(content)?;
    let text = ron::ser::to_string_pretty(
        progress,
        ron::ser::PrettyConfig::new().struct_names(false).depth_limit(2),
    )
    .map_err(|error| content(error.into()))?;
    write_synced(&folder.join(PROGRESS_FILE), text.as_bytes()).at(folder)?;
    checksums::write(folder, PROGRESS_FILE).at(folder)?;
    sync_folder(folder).at(folder)?;
    Ok(bytes_below(folder))
}

/// Rounds with a checkpoint before them.
fn between_rounds(ids: Vec<CheckpointId>) -> Vec<u32> {
    let between = ids.into_iter().filter(|id| !id.is_inside_round());
    between.map(|id| id.round).collect()
}

/// Numbers separated by commas, lowest first.
fn list(rounds: &[u32]) -> String {
    let texts: Vec<String> = rounds.iter().rev().map(u32::to_string).collect();
    texts.join(", ")
}

fn read(folder: &Path) -> Result<Progress, CheckpointError> {
    /// The field that every format has.
    #[derive(Deserialize)]
    struct AnyFormat {
        format: u32,
    }

    let path = folder.join(PROGRESS_FILE);
    let text = files::read_text(&path).at(&path)?;
    let content = |error: RonError| CheckpointError::Content {
        path: path.clone(),
        failure: error.into(),
    };
    let AnyFormat { format } = read_ron(&text).map_err(content)?;
    if format != Progress::FORMAT {
        return Err(CheckpointError::Format { path, found: format });
    }
    checksums::verify(folder, PROGRESS_FILE)?;
    read_ron(&text).map_err(content)
}

fn remove(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        storage::remove_dir_all(folder)?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests;
