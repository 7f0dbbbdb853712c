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
use crate::files::LATEST;
use crate::health::{AtPath, FileError};
use crate::storage::{self, create_synced, sync_folder, sync_folder_of};
use crate::telemetry::{RunInfo, RunState, Timestamp};

/// The variable that moves the root of all runs.
const ROOT_VARIABLE: &str = "SIMIC_ENGINE_RUNS";
pub(crate) const MANIFEST_FILE: &str = "manifest.json";
pub(crate) const SOURCE_FILE: &str = "scenario.ron";
pub(crate) const RESOLVED_FILE: &str = "resolved.ron";
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

/// The folder in which the relative paths of the scenario file at `path` start, as an absolute path: its own; of a run's
/// copies of its scenario that of the file they are copies of.
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
        let origin = RunDirectory::open(&folder)?.origin()?;
        return Ok(origin.scenario_folder.or(Some(folder)));
    }
    Ok(Some(folder))
}

/// The file that a scenario was written in.
#[derive(Resource, Clone, Debug, Default)]
pub struct ScenarioFile {
    /// As it was given; `None` for a built-in scenario, or a text from a program.
    pub path: Option<PathBuf>,
    /// Relative paths in it start there, whatever the working directory; absolute.
    pub folder: Option<PathBuf>,
    /// Verbatim.
    pub text: String,
}

impl ScenarioFile {
    /// Of a text that no file holds; its paths start in the working directory.
    pub fn of_text(text: &str) -> Self {
        Self {
            path: None,
            folder: std::env::current_dir().ok(),
            text: text.into(),
        }
    }
}

/// What a manifest tells of the scenario file.
#[derive(Deserialize)]
struct Origin {
    scenario_path: Option<PathBuf>,
    scenario_folder: Option<PathBuf>,
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
    /// recognised at a glance; a second one in the same second gets `-2`. An `id` that is given is used as it is.
    ///
    /// # Errors
    /// If a folder or file cannot be created; if there is a run of that `id`.
    pub fn create(
        root: &Path,
        id: Option<&str>,
        name: &str,
        source: &[u8],
        resolved: &str,
    ) -> Result<Self, RunDirectoryError> {
        Self::create_at(root, id, name, source, resolved, Timestamp::now())
    }

    fn create_at(
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

    /// Writes the name of this run into the file `latest` beside it. Convenience only: where that cannot be done, it is
    /// said, and the run goes on.
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

    /// Claims the run for this process.
    ///
    /// # Errors
    /// If another process plays the run, or its files cannot be opened.
    pub fn claim(&self) -> Result<RunClaim, RunDirectoryError> {
        Ok(RunClaim::of(self.resolved_path())?)
    }

    /// Whether a process has claimed the run at `path`; `None` where that cannot be told, as on a file system without locks.
    /// Only a claim that is made in the very moment of the question may be refused for it.
    pub fn is_claimed(path: &Path) -> Option<bool> {
        let file = std::fs::File::open(path.join(RESOLVED_FILE)).ok()?;
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
        let Origin {
            scenario_path,
            scenario_folder,
        } = self.origin()?;
        let path = self.path.join(SOURCE_FILE);
        Ok(ScenarioFile {
            path: scenario_path,
            folder: scenario_folder,
            text: std::fs::read_to_string(&path).at(&path)?,
        })
    }

    fn origin(&self) -> Result<Origin, RunDirectoryError> {
        let path = self.path.join(MANIFEST_FILE);
        let text = std::fs::read(&path).at(&path)?;
        Ok(serde_json::from_slice(&text).at(&path)?)
    }

    /// blake3 of the files that nothing changes once the run has begun, besides the resolved scenario.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub(super) fn hashes(&self) -> Result<BTreeMap<String, String>, RunDirectoryError> {
        let hash = |name: &str| {
            let path = self.path.join(name);
            let content = std::fs::read(&path).at(&path)?;
            Ok((name.to_owned(), blake3::hash(&content).to_hex().to_string()))
        };
        [MANIFEST_FILE, SOURCE_FILE].into_iter().map(hash).collect()
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

/// [`RunDirectory::become_latest`] of the folder at `path`, which is called `id`.
pub(crate) fn note_latest(path: &Path, id: &str) {
    let latest = path.with_file_name(LATEST);
    // Under a name of its own: several runs may begin at once.
    let unfinished = path.with_file_name(format!(".{LATEST}-{id}"));
    let written = storage::write_synced(&unfinished, format!("{id}\n").as_bytes());
    if let Err(error) = written.and_then(|()| storage::rename(&unfinished, &latest)) {
        // Where nothing can be removed either, the warning tells.
        let _ = storage::remove_file(&unfinished);
        tracing::warn!(file = %latest.display(), %error, "the newest run was not noted");
    }
}

/// A fresh folder in `root`: `id`, or the time, the name and the first digits of the hash.
///
/// # Errors
/// If it cannot be created; if there is one of that `id`.
pub(crate) fn create_folder(
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
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_milliseconds(1_700_000_000_005);

    fn create(root: &Path) -> RunDirectory {
        RunDirectory::create_at(root, None, "Quick start!", b"// mine\n()", "(seed: 42)", NOW).unwrap()
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

    #[test]
    fn latest_names_the_newest_run() {
        let root = tempfile::tempdir().unwrap();

        create(root.path()).become_latest();
        let second = create(root.path());
        second.become_latest();

        let latest = root.path().join("latest");
        assert_eq!(std::fs::read_to_string(&latest).unwrap().trim(), second.run_id());
        assert_eq!(crate::files::follow_latest(&latest), second.path());
    }

    /// As runs were noted before: what followed the link would find the newest run twice.
    #[cfg(unix)]
    #[test]
    fn a_link_named_latest_becomes_a_file() {
        let root = tempfile::tempdir().unwrap();
        let first = create(root.path());
        std::os::unix::fs::symlink(first.run_id(), root.path().join("latest")).unwrap();

        create(root.path()).become_latest();

        assert!(!root.path().join("latest").is_symlink());
        assert!(first.path().join("scenario.ron").exists());
    }

    #[test]
    fn a_folder_named_latest_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("latest")).unwrap();

        create(root.path()).become_latest();

        assert!(root.path().join("latest").is_dir());
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_run_is_played_by_one_process_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let run = create(root.path());

        let claim = run.claim().unwrap();
        let clone = claim.clone();
        drop(claim);

        let refused = run.claim().unwrap_err().to_string();
        assert!(refused.contains("another process is playing this run"), "{refused}");
        assert_eq!(RunDirectory::is_claimed(run.path()), Some(true));
        drop(clone);
        assert_eq!(RunDirectory::is_claimed(run.path()), Some(false));
        assert!(run.claim().is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_run_directory_that_is_gone_or_another_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let run = create(root.path());
        let claim = run.claim().unwrap();
        assert!(claim.is_in_place());

        std::fs::rename(run.path(), root.path().join("elsewhere")).unwrap();
        assert!(!claim.is_in_place());
        create(root.path());
        assert!(!claim.is_in_place(), "another of the same name");
    }

    #[test]
    fn a_run_s_copies_of_its_scenario_keep_the_folder_of_the_original() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let run = create(&root);
        let copies = ["scenario.ron", "resolved.ron"].map(|name| run.path().join(name));
        let folders = || copies.each_ref().map(|copy| scenario_folder(copy).unwrap().unwrap());
        assert_eq!(folders(), [run.path(), run.path()], "nothing is known of another");

        std::fs::write(
            run.path().join("manifest.json"),
            r#"{"scenario_folder": "/experiments"}"#,
        )
        .unwrap();

        assert_eq!(folders(), ["/experiments", "/experiments"].map(PathBuf::from));
        let own = scenario_folder(&run.path().join("other.ron")).unwrap();
        assert_eq!(own.as_deref(), Some(run.path()));
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
