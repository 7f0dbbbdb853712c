//! The run directory: a fresh folder per run that nothing ever overwrites, with the scenario as it was
//! written and as it was resolved.

use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use bevy_ecs::prelude::Resource;
use serde::Deserialize;

use super::files::point_at;
use super::status::RunStatus;
use crate::files::{create_synced, sync_folder, sync_folder_of};
use crate::health::{AtPath, FileError};
use crate::telemetry::{RunInfo, RunState, Timestamp};

/// The variable that moves the root of all runs.
const ROOT_VARIABLE: &str = "SIMIC_ENGINE_RUNS";
pub(super) const MANIFEST_FILE: &str = "manifest.json";
const RESOLVED_FILE: &str = "resolved.ron";
/// Longest part of a run id that comes from the scenario's name.
const SLUG_CHARACTERS: usize = 40;

/// What went wrong with a run directory.
#[derive(Debug, thiserror::Error)]
#[error("run directory: {0}")]
pub struct RunDirectoryError(#[from] FileError);

/// Where runs go: `--out`, else `SIMIC_ENGINE_RUNS`, else `./runs`.
pub fn runs_root(out: Option<&Path>) -> PathBuf {
    root_from(out, std::env::var_os(ROOT_VARIABLE).map(PathBuf::from))
}

fn root_from(out: Option<&Path>, variable: Option<PathBuf>) -> PathBuf {
    out.map(Path::to_path_buf)
        .or(variable.filter(|root| !root.as_os_str().is_empty()))
        .unwrap_or_else(|| "runs".into())
}

/// Where `run` is: a folder, or the name of one in the folder of all runs (see [`runs_root`]).
pub fn find_run(run: &Path, out: Option<&Path>) -> Option<PathBuf> {
    [run.to_path_buf(), runs_root(out).join(run)]
        .into_iter()
        .find(|place| place.is_dir())
}

/// Keeps other processes from the run directory for as long as it lives.
#[derive(Resource, Debug)]
pub struct RunClaim {
    _lock: File,
}

/// A directory that belongs to one run: of the app's, once it has begun.
#[derive(Resource, Clone, Debug, PartialEq, Eq)]
pub struct RunDirectory {
    run_id: String,
    path: PathBuf,
    scenario_hash: String,
}

impl RunDirectory {
    /// Creates `root/{run_id}` with `scenario.ron` (`source`, verbatim), `resolved.ron` and a status of `starting`, and
    /// points `root/latest` at it.
    ///
    /// The id is the time, the name, and the first digits of the scenario's hash, so that runs of equal settings are
    /// recognised at a glance; a second one in the same second gets `-2`.
    ///
    /// # Errors
    /// If a folder or file cannot be created.
    pub fn create(root: &Path, name: &str, source: &[u8], resolved: &str) -> Result<Self, RunDirectoryError> {
        Self::create_at(root, name, source, resolved, Timestamp::now())
    }

    fn create_at(
        root: &Path,
        name: &str,
        source: &[u8],
        resolved: &str,
        now: Timestamp,
    ) -> Result<Self, RunDirectoryError> {
        let scenario_hash = blake3::hash(resolved.as_bytes()).to_hex().to_string();
        let wanted = format!("{}-{}-{}", now.compact(), slug(name), &scenario_hash[..4]);
        std::fs::create_dir_all(root).at(root)?;
        let (run_id, path) = claim(root, &wanted)?;
        let directory = Self {
            run_id,
            path,
            scenario_hash,
        };
        directory.add_file("scenario.ron", source)?;
        directory.add_file(RESOLVED_FILE, resolved.as_bytes())?;
        let status = RunStatus::new(RunState::Starting);
        status.write(&directory.path).at(&directory.path)?;
        // A checkpoint is worth nothing without the scenario that it belongs to: folders and names first.
        sync_folder(&directory.path).at(&directory.path)?;
        sync_folder(root).at(root)?;
        sync_folder_of(root).at(root)?;
        point_at(root, "latest", &directory.run_id);
        Ok(directory)
    }

    /// Whether there is one at `path`.
    pub fn is_at(path: &Path) -> bool {
        path.join(RESOLVED_FILE).is_file()
    }

    /// The directory of a run that has begun already.
    ///
    /// # Errors
    /// If there is none at `path`.
    pub fn open(path: &Path) -> Result<Self, RunDirectoryError> {
        // `latest` and `.` are no names of runs.
        let path = path.canonicalize().at(path)?;
        let resolved = path.join(RESOLVED_FILE);
        let scenario = std::fs::read(&resolved).at(&resolved)?;
        Ok(Self {
            run_id: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            scenario_hash: blake3::hash(&scenario).to_hex().to_string(),
            path,
        })
    }

    /// Claims the run for this process, until the claim is dropped or the process ends in whatever way.
    ///
    /// # Errors
    /// If another process plays the run, or the file system has no locks.
    pub fn claim(&self) -> Result<RunClaim, RunDirectoryError> {
        let path = self.resolved_path();
        let file = File::open(&path).at(&path)?;
        let locked = file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Error::other("another process is playing this run; wait for it or stop it"),
            TryLockError::Error(error) => error,
        });
        locked.at(&path)?;
        Ok(RunClaim { _lock: file })
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

    /// The scenario file as the run was given it: relative paths in it start there. `None` for a built-in scenario.
    ///
    /// # Errors
    /// A manifest that cannot be read.
    pub fn scenario_path(&self) -> Result<Option<PathBuf>, RunDirectoryError> {
        #[derive(Deserialize)]
        struct Source {
            scenario_path: Option<PathBuf>,
        }
        let path = self.path.join(MANIFEST_FILE);
        let text = std::fs::read(&path).at(&path)?;
        let source: Source = serde_json::from_slice(&text).at(&path)?;
        Ok(source.scenario_path)
    }

    /// What the sinks of a run that begins are started with.
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

/// Creates the first of `wanted`, `wanted-2`, `wanted-3`, … that does not exist.
fn claim(root: &Path, wanted: &str) -> Result<(String, PathBuf), RunDirectoryError> {
    let mut attempt = 1_u32;
    loop {
        let run_id = match attempt {
            1 => wanted.to_owned(),
            later => format!("{wanted}-{later}"),
        };
        let path = root.join(&run_id);
        match std::fs::create_dir(&path) {
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
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_milliseconds(1_700_000_000_005);

    fn create(root: &Path) -> RunDirectory {
        RunDirectory::create_at(root, "Quick start!", b"// mine\n()", "(seed: 42)", NOW).unwrap()
    }

    #[test]
    fn a_run_is_named_by_time_scenario_and_hash() {
        let root = tempfile::tempdir().unwrap();

        let run = create(root.path());

        let hash = blake3::hash(b"(seed: 42)").to_hex();
        assert_eq!(run.run_id(), format!("20231114-221320-quick-start-{}", &hash[..4]));
        assert_eq!(run.scenario_hash(), hash.as_str());
    }

    #[test]
    fn the_scenario_is_kept_as_written_and_as_resolved() {
        let root = tempfile::tempdir().unwrap();

        let run = create(root.path());

        let read = |name| std::fs::read_to_string(run.path().join(name)).unwrap();
        assert_eq!(read("scenario.ron"), "// mine\n()");
        assert_eq!(read("resolved.ron"), "(seed: 42)");
        assert!(read("status.json").contains("\"starting\""));
    }

    #[test]
    fn runs_of_one_second_get_directories_of_their_own() {
        let root = tempfile::tempdir().unwrap();

        let runs = [create(root.path()), create(root.path()), create(root.path())];

        assert_eq!(runs[1].run_id(), format!("{}-2", runs[0].run_id()));
        assert_eq!(runs[2].run_id(), format!("{}-3", runs[0].run_id()));
    }

    #[cfg(unix)]
    #[test]
    fn latest_points_at_the_newest_run() {
        let root = tempfile::tempdir().unwrap();

        create(root.path());
        let second = create(root.path());

        let target = std::fs::read_link(root.path().join("latest")).unwrap();
        assert_eq!(target, Path::new(second.run_id()));
    }

    #[test]
    fn a_folder_named_latest_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("latest")).unwrap();

        create(root.path());

        assert!(root.path().join("latest").is_dir());
        assert!(!root.path().join("latest").is_symlink());
    }

    #[test]
    fn the_root_is_the_flag_then_the_variable_then_runs() {
        let flag = Path::new("flag");

        assert_eq!(root_from(Some(flag), Some("variable".into())), flag);
        assert_eq!(root_from(None, Some("variable".into())), Path::new("variable"));
        assert_eq!(root_from(None, None), Path::new("runs"));
    }

    #[test]
    fn names_without_letters_still_make_an_id() {
        assert_eq!(slug("…"), "run");
        assert_eq!(slug("A/B  test_1"), "a-b-test-1");
    }
}
