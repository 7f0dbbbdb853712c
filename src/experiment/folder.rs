//! The folder of an experiment: all of its state.
//!
//! ```text
//! EXPERIMENT/
//!   experiment.json             what was declared
//!   scenario.ron  arms/ID.ron   the scenario as it was written, and what each arm makes of it
//!   replicate-01/ID/            an ordinary run
//!   replicate-01/result.json    what came of the replicate, once it has ended
//!   ab.json  events.jsonl       the report
//!   log.txt
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::outcome::{Record, ReplicateResult};
use super::plan::{Plan, PlanFile};
use super::report::Report;
use crate::checkpoint::{Checkpoints, ResumeError, Standing};
use crate::engine::{Prepared, SetupError};
use crate::health::{AtPath, EngineError, FileError};
use crate::record::{EXPERIMENT_FILE as PLAN, RunClaim, RunDirectoryError, ScenarioFile, create_folder, note_latest};
use crate::scenario::{Catalog, resolved_ron};
use crate::storage::{self, replace_synced, sync_folder};
use crate::telemetry::{ReadError, Timestamp};

const SCENARIO: &str = "scenario.ron";
const ARMS: &str = "arms";
const RESULT: &str = "result.json";
const REPORT: &str = "ab.json";

/// Why an experiment cannot be played or read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ExperimentError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Directory(#[from] RunDirectoryError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("arm \"{arm}\" cannot go on: {error}")]
    Resume { arm: String, error: ResumeError },
    /// Before anything was recorded of an arm.
    #[error("arm \"{arm}\" cannot begin: {error}")]
    Start { arm: String, error: EngineError },
    #[error("{0}: this cannot be written as RON")]
    Unwritable(String),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{}: written by another version of simic-engine; use that one", .0.display())]
    Format(PathBuf),
    #[error("{} is no experiment (no {PLAN} in it) and no {REPORT}", .0.display())]
    Missing(PathBuf),
}

/// A folder that an experiment is played in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentFolder(PathBuf);

impl ExperimentFolder {
    /// Makes the folder, and notes it as the latest unless it was given an `id`.
    ///
    /// # Errors
    /// If it cannot be made; if there is one of that `id`.
    pub fn create(root: &Path, id: Option<&str>, plan: &Plan) -> Result<Self, ExperimentError> {
        let arms = plan.arms.iter().zip(&plan.design.arms);
        let texts: Vec<(&str, String)> = arms
            .map(|(prepared, arm)| {
                let written = resolved_ron(&prepared.loaded.scenario);
                written
                    .map(|text| (arm.id.as_str(), text))
                    .map_err(|_| ExperimentError::Unwritable(arm.id.clone()))
            })
            .collect::<Result<_, _>>()?;
        let all: String = texts.iter().map(|(_, text)| text.as_str()).collect();
        let hash = blake3::hash(all.as_bytes()).to_hex();
        let (name, path) = create_folder(root, id, &plan.design.name, &hash, Timestamp::now())?;
        let folder = Self(path);
        let arms = folder.0.join(ARMS);
        storage::create_dir(&arms).at(&arms)?;
        for (id, text) in texts {
            write(&folder.arm_scenario(id), text.as_bytes())?;
        }
        let file = plan.arms.first().map(|arm| arm.file.clone()).unwrap_or_default();
        write(&folder.0.join(SCENARIO), file.text.as_bytes())?;
        let kept = PlanFile {
            design: plan.design.clone(),
            labels: plan.labels.clone(),
            scenario_path: file.path,
            scenario_folder: file.folder,
        };
        // Last: with it the experiment exists.
        write_json(&folder.0.join(PLAN), &kept)?;
        sync_folder(root).at(root)?;
        if id.is_none() {
            note_latest(&folder.0, &name);
        }
        Ok(folder)
    }

    /// Whether there is one at `path`.
    pub fn is_at(path: &Path) -> bool {
        path.join(PLAN).is_file()
    }

    /// The experiment at `path`.
    ///
    /// # Errors
    /// There is none.
    pub fn open(path: &Path) -> Result<Self, ExperimentError> {
        if !Self::is_at(path) {
            return Err(ExperimentError::Missing(path.into()));
        }
        // `latest` is no name of an experiment.
        Ok(Self(path.canonicalize().at(path)?))
    }

    /// Keeps other processes from the experiment.
    ///
    /// # Errors
    /// If another process plays it.
    pub fn claim(&self) -> Result<RunClaim, FileError> {
        RunClaim::of(self.0.join(PLAN))
    }

    fn plan_file(&self) -> Result<PlanFile, ExperimentError> {
        let path = self.0.join(PLAN);
        let file: PlanFile = read_json(&path)?;
        if !file.design.is_known() {
            return Err(ExperimentError::Format(path));
        }
        Ok(file)
    }

    /// What it plays, its arms checked anew.
    ///
    /// # Errors
    /// Files that cannot be read; an arm that this version or machine cannot play.
    pub fn plan(&self, catalog: &Catalog) -> Result<Plan, ExperimentError> {
        let PlanFile {
            design,
            labels,
            scenario_path,
            scenario_folder,
        } = self.plan_file()?;
        let file = ScenarioFile {
            path: scenario_path,
            folder: scenario_folder,
            text: read(&self.0.join(SCENARIO))?,
        };
        let arm = |id: &str| -> Result<Prepared, ExperimentError> {
            let path = self.arm_scenario(id);
            let label = path.display().to_string();
            let mut prepared = Prepared::from_ron(&label, &read(&path)?, &[], &catalog.without_images())?;
            prepared.file = file.clone();
            Ok(prepared)
        };
        let arms = design.arms.iter().map(|known| arm(&known.id));
        Ok(Plan {
            arms: arms.collect::<Result<_, _>>()?,
            design,
            labels,
        })
    }

    /// Everything that has come of it so far.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn record(&self) -> Result<Record, ExperimentError> {
        let design = self.plan_file()?.design;
        let mut replicates = Vec::new();
        for replicate in 0..design.replicates {
            if self.has_result(replicate) {
                replicates.push(read_json(&self.result(replicate))?);
            }
        }
        Ok(Record { design, replicates })
    }

    /// Reads the raw values of an experiment, from its folder or from its `ab.json`.
    ///
    /// # Errors
    /// Neither of them, or files that cannot be read.
    pub fn read_record(path: &Path) -> Result<Record, ExperimentError> {
        if path.is_file() {
            let record: Record = read_json(path)?;
            return match record.design.is_known() {
                true => Ok(record),
                false => Err(ExperimentError::Format(path.into())),
            };
        }
        Self::open(path)?.record()
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn arm_scenario(&self, id: &str) -> PathBuf {
        self.0.join(ARMS).join(format!("{id}.ron"))
    }

    /// Folder of the runs of a replicate, which is counted from 0 here and from 1 in names.
    pub fn replicate(&self, replicate: u32) -> PathBuf {
        self.0.join(format!("replicate-{:02}", u64::from(replicate) + 1))
    }

    fn result(&self, replicate: u32) -> PathBuf {
        self.replicate(replicate).join(RESULT)
    }

    /// Whether a replicate has ended.
    pub fn has_result(&self, replicate: u32) -> bool {
        self.result(replicate).is_file()
    }

    /// Ends a replicate for good.
    pub(super) fn write_result(&self, result: &ReplicateResult) -> Result<(), FileError> {
        let folder = self.replicate(result.replicate);
        storage::create_dir_all(&folder).at(&folder)?;
        write_json(&folder.join(RESULT), result)
    }

    /// The newest round that every arm of a replicate has a checkpoint before; `None` if there is none.
    ///
    /// # Errors
    /// Checkpoints that cannot be looked at: whether there are any is not known then, and nothing may be begun anew.
    pub(super) fn common_round(&self, replicate: u32, arms: &[&str]) -> Result<Option<u32>, FileError> {
        let folder = self.replicate(replicate);
        let shelves = arms.iter().map(|arm| Checkpoints::of(&folder.join(arm)).list());
        let shelves: Vec<Vec<Standing>> = shelves.collect::<Result<_, _>>()?;
        let in_all = |standing: &&Standing| shelves.iter().all(|shelf| shelf.contains(standing));
        let between = shelves.iter().flatten().filter(|standing| !standing.is_inside_round());
        Ok(between.filter(in_all).max().map(|standing| standing.round))
    }

    /// Moves what there is of a replicate out of the way: some arm of it had no checkpoint yet.
    pub(super) fn set_aside(&self, replicate: u32) -> Result<(), FileError> {
        let folder = self.replicate(replicate);
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for number in 1_u32.. {
            let place = self.0.join(format!("{name}.discarded-{number}"));
            match storage::rename(&folder, &place) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(_) if place.exists() => {}
                moved => return moved.at(&place),
            }
        }
        Ok(())
    }

    /// Writes `ab.json`.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn write_report(&self, report: &Report) -> Result<PathBuf, ExperimentError> {
        let path = self.0.join(REPORT);
        write_json(&path, report)?;
        Ok(path)
    }
}

fn read(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).at(path)
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, FileError> {
    serde_json::from_str(&read(path)?).at(path)
}

fn write(path: &Path, content: &[u8]) -> Result<(), FileError> {
    replace_synced(path, content).at(path)
}

fn write_json(path: &Path, content: &impl Serialize) -> Result<(), FileError> {
    let mut text = serde_json::to_vec_pretty(content).at(path)?;
    text.push(b'\n');
    write(path, &text)
}

#[cfg(test)]
mod tests;
