//! The run directory: a fresh folder per run that nothing ever overwrites, with the scenario as it was
//! written and as it was resolved.

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bevy_ecs::prelude::Resource;
use serde::Deserialize;

use super::claim::RunClaim;
use super::status::RunStatus;
use crate::files::{self, LATEST};
use crate::health::{AtPath, FileError};
use crate::storage::{self, create_synced, sync_folder, sync_folder_of};
use crate::telemetry::{RunInfo, RunState, Timestamp};

/// The variable that moves the root of all runs.
const ROOT_VARIABLE: &str = "SIMIC_ENGINE_RUNS";
/// The program, machine and data that a run was made with.
pub const MANIFEST_FILE: &str = "manifest.json";
/// The scenario as it was written.
pub const SOURCE_FILE: &str = "scenario.ron";
/// The scenario with every default.
pub const RESOLVED_FILE: &str = "resolved.ron";
/// Longest part of a run id that comes from the scenario's name.
const SLUG_CHARACTERS: usize = 40;

/// An error of a run directory's files.
#[derive(Debug, thiserror::Error)]
#[error("run directory: {0}")]
pub struct RunDirectoryError(#[from] FileError);

/// The folder of runs: `--out`, else `SIMIC_ENGINE_RUNS`, else `./runs`.
pub fn runs_root(out: Option<&Path>) -> PathBuf {
    root_from(out, std::env::var_os(ROOT_VARIABLE).map(PathBuf::from))
}

fn root_from(out: Option<&Path>, variable: Option<PathBuf>) -> PathBuf {
    out.map(Path::to_path_buf)
        .or(variable.filter(|root| !root.as_os_str().is_empty()))
        .unwrap_or_else(|| "runs".into())
}

/// The absolute folder in which the relative paths of the scenario file at `path` start: its own. For a run's
/// copies of its scenario it is that of the original file.
///
/// # Errors
/// A run's manifest that cannot be read.
pub fn scenario_folder(path: &Path) -> Result<Option<PathBuf>, RunDirectoryError> {
    let Some(parent) = path.parent() else {
        return Ok(None);
    };
    let parent = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    let folder = parent.canonicalize().at(parent)?;
    let is_copy = [SOURCE_FILE, RESOLVED_FILE].iter().any(|name| path.ends_with(name));
    if is_copy && RunDirectory::is_at(&folder) && folder.join(MANIFEST_FILE).is_file() {
        let origin = ManifestHead::read(RunDirectory::open(&folder)?.path())?;
        return Ok(origin.scenario_folder.or(Some(folder)));
    }
    Ok(Some(folder))
}

/// The file that a scenario was written in.
#[derive(Resource, Clone, Debug, Default)]
pub struct ScenarioFile {
    /// The path as it was given; `None` for a built-in scenario, or a text from a program.
    pub path: Option<PathBuf>,
    /// The folder in which its relative paths start, independent of the working directory; absolute.
    pub folder: Option<PathBuf>,
    /// Verbatim.
    pub text: String,
}

impl ScenarioFile {
    /// A scenario that isn't in a file. Its relative paths start in the working directory.
    pub fn of_text(text: &str) -> Self {
        Self {
            path: None,
            folder: std::env::current_dir().ok(),
            text: text.into(),
        }
    }
}

/// The fields of a manifest that are read: those that a list of runs shows, and where the scenario file was.
#[derive(Deserialize)]
pub(super) struct ManifestHead {
    pub created: Option<Timestamp>,
    #[serde(default)]
    pub tags: Vec<String>,
    scenario_path: Option<PathBuf>,
    scenario_folder: Option<PathBuf>,
}

impl ManifestHead {
    /// Head of the manifest of the run in `directory`.
    ///
    /// # Errors
    /// A manifest that is missing or can't be read.
    pub fn read(directory: &Path) -> Result<Self, FileError> {
        let path = directory.join(MANIFEST_FILE);
        let text = files::read(&path).at(&path)?;
        serde_json::from_slice(&text).at(&path)
    }
}

/// A directory that belongs to one run: of the app's, once anything is written there.
#[derive(Resource, Clone, Debug, PartialEq, Eq)]
pub struct RunDirectory {
    run_id: String,
    path: PathBuf,
    scenario_hash: String,
}

impl RunDirectory {
    /// Creates `root/{run_id}` with `scenario.ron` (`source`, verbatim), `resolved.ron` and a status of `starting`.
    ///
    /// The id is the time, the name, and the first digits of the scenario's hash, so that runs of equal settings are
    /// recognised at a glance; a second one in the same second gets `-2`. A given `id` is used unchanged.
    ///
    /// # Errors
    /// A folder or file that cannot be created, or a run of that `id` that exists.
    pub fn create(
        root: &Path,
        id: Option<&str>,
        name: &str,
        source: &[u8],
        resolved: &str,
        now: Timestamp,
    ) -> Result<Self, RunDirectoryError> {
        let scenario_hash = blake3::hash(resolved.as_bytes()).to_hex().to_string();
        let (run_id, path) = create_folder(root, id, name, &scenario_hash, now)?;
        let directory = Self {
            run_id,
            path,
            scenario_hash,
        };
        directory.add_file(SOURCE_FILE, source)?;
        directory.add_file(RESOLVED_FILE, resolved.as_bytes())?;
        let status = RunStatus::new(RunState::Starting);
        status.write(&directory.path).at(&directory.path)?;
        // A checkpoint is worth nothing without the scenario that it belongs to: folders and names first.
        sync_folder(&directory.path).at(&directory.path)?;
        sync_folder(root).at(root)?;
        sync_folder_of(root).at(root)?;
        Ok(directory)
    }

    /// Writes the name of this run into the file `latest` next to its folder, for convenience: if it fails, a warning says so and
    /// the run continues.
    pub fn become_latest(&self) {
        note_latest(&self.path, &self.run_id);
    }

    /// Says in `status.json` that the run could not begin, and why.
    pub fn note_failure(&self, why: &str) {
        let status = RunStatus {
            error: Some(why.into()),
            ..RunStatus::new(RunState::Failed)
        };
        if let Err(error) = status.write(&self.path) {
            tracing::warn!(%error, directory = %self.path.display(), "the status of a failed run was not written");
        }
    }

    /// Returns whether there is one at `path`.
    pub fn is_at(path: &Path) -> bool {
        path.join(RESOLVED_FILE).is_file()
    }

    /// The directory of a run that has begun already.
    ///
    /// # Errors
    /// If there is none at `path`.
    pub fn open(path: &Path) -> Result<Self, RunDirectoryError> {
        // `latest` and `.` aren't names of runs.
        let path = path.canonicalize().at(path)?;
        let resolved = path.join(RESOLVED_FILE);
        let scenario = files::read(&resolved).at(&resolved)?;
        Ok(Self {
            run_id: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            scenario_hash: blake3::hash(&scenario).to_hex().to_string(),
            path,
        })
    }

    /// Claims the run for this process.
    ///
    /// # Errors
    /// If another process plays the run, or its files cannot be opened.
    pub fn claim(&self) -> Result<RunClaim, RunDirectoryError> {
        Ok(RunClaim::of(self.resolved_path())?)
    }

    /// Returns whether a process has claimed the run at `path`; `None` where that is unknown, as on a file system without
    /// locks. Only a claim that is made at the very moment of this question may be refused because of it.
    pub fn is_claimed(path: &Path) -> Option<bool> {
        let file = files::open(&path.join(RESOLVED_FILE)).ok()?;
        match file.try_lock_shared() {
            Ok(()) => Some(false),
            Err(TryLockError::WouldBlock) => Some(true),
            Err(TryLockError::Error(_)) => None,
        }
    }

    /// Name of the folder.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// blake3 of `resolved.ron`.
    pub fn scenario_hash(&self) -> &str {
        &self.scenario_hash
    }

    /// The scenario with every default and override.
    pub fn resolved_path(&self) -> PathBuf {
        self.path.join(RESOLVED_FILE)
    }

    /// The scenario file as the run was given it.
    ///
    /// # Errors
    /// A manifest or a copy of the scenario that cannot be read.
    pub fn scenario_file(&self) -> Result<ScenarioFile, RunDirectoryError> {
        let origin = ManifestHead::read(&self.path)?;
        let path = self.path.join(SOURCE_FILE);
        Ok(ScenarioFile {
            path: origin.scenario_path,
            folder: origin.scenario_folder,
            text: files::read_text(&path).at(&path)?,
        })
    }

    /// blake3 of the files that nothing changes once the run has begun, except the resolved scenario.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub(super) fn hashes(&self) -> Result<BTreeMap<String, String>, RunDirectoryError> {
        let hash = |name: &str| {
            let path = self.path.join(name);
            let content = files::read(&path).at(&path)?;
            Ok((name.to_owned(), blake3::hash(&content).to_hex().to_string()))
        };
        [MANIFEST_FILE, SOURCE_FILE].into_iter().map(hash).collect()
    }

    /// The information that the sinks of a run start with.
    pub fn info(&self) -> RunInfo {
        RunInfo {
            run_id: self.run_id.clone(),
            directory: self.path.clone(),
            earlier: None,
        }
    }

    /// Writes a file that must not exist yet, for good.
    fn add_file(&self, name: &str, content: &[u8]) -> Result<(), RunDirectoryError> {
        let path = self.path.join(name);
        Ok(create_synced(&path, content).at(&path)?)
    }
}

/// [`RunDirectory::become_latest`] of the folder at `path`, which is called `id`.
fn note_latest(path: &Path, id: &str) {
    let latest = path.with_file_name(LATEST);
    // Under a unique name: several runs may begin at once.
    let unfinished = path.with_file_name(format!(".{LATEST}-{id}"));
    let written = storage::write_synced(&unfinished, format!("{id}\n").as_bytes());
    if let Err(error) = written.and_then(|()| storage::rename(&unfinished, &latest)) {
        // If removing fails too, the warning below is enough.
        let _ = storage::remove_file(&unfinished);
        tracing::warn!(file = %latest.display(), %error, "the file `latest` could not be written");
    }
}

/// A fresh folder in `root`: `id`, or the time, the name and the first digits of the hash.
///
/// # Errors
/// A folder that cannot be created, or one of that `id` that exists.
fn create_folder(
    root: &Path,
    id: Option<&str>,
    name: &str,
    hash: &str,
    now: Timestamp,
) -> Result<(String, PathBuf), RunDirectoryError> {
    storage::create_dir_all(root).at(root)?;
    match id {
        Some(id) => {
            let path = root.join(id);
            storage::create_dir(&path).at(&path)?;
            Ok((id.to_owned(), path))
        }
        None => claim(root, &format!("{}-{}-{}", now.compact(), slug(name), &hash[..4])),
    }
}

/// Creates the first of `wanted`, `wanted-2`, `wanted-3`, … that does not exist.
fn claim(root: &Path, wanted: &str) -> Result<(String, PathBuf), RunDirectoryError> {
    let mut attempt = 1_u32;
    loop {
        let run_id = match attempt {
            1 => wanted.to_owned(),
            later => format!("{wanted}-{later}"),
        };
        let path = root.join(&run_id);
        match storage::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => attempt += 1,
            made => return Ok(made.at(&path).map(|()| (run_id, path))?),
        }
    }
}

/// Lower-case letters, digits and single hyphens.
fn slug(name: &str) -> String {
    let words: Vec<String> = name
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let mut slug = words.join("-");
    slug.truncate(SLUG_CHARACTERS);
    match slug.trim_end_matches('-') {
        "" => "run".into(),
        slug => slug.into(),
    }
}

#[cfg(test)]
mod tests;
