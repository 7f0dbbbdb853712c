//! The folder of a sweep: all of its state, for any number of workers on any machines that share the file system.
//!
//! ```text
//! SWEEP/
//!   sweep.ron  scenario.ron   as they were written
//!   plan.json                 the trials, in order
//!   trials/ID/                an ordinary run
//!   logs/ID.log               what the processes of a trial have printed
//!   leases/ID.0001            who plays a trial, one file an attempt (see `lease`)
//!   results/ID.json           how a trial ended (see `outcome`)
//!   trials.csv  curves.csv  sweep.json
//!   slurm.sh  *.py            what hands it to a cluster (see `launch`)
//! ```

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::file::SweepFile;
use super::plan::{Plan, Planned};
use super::process::Worker;
use crate::engine::built_in_names;
use crate::health::{AtPath, FileError};
use crate::record::runs_root;
use crate::scenario::read_declared;
use crate::storage::{self, replace_synced, sync_folder};

const PLAN: &str = "plan.json";
const FOLDERS: [&str; 4] = ["trials", "logs", "leases", "results"];
/// The folder of sweeps, next to the runs.
const SWEEPS: &str = "sweeps";

/// The reason why a sweep cannot be begun, opened or handed over.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A file of it.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file or folder with which it begins cannot be written; others of them may be there.
    #[error("the sweep cannot begin: {0}")]
    Unwritten(FileError),
    /// There is none: what was looked for, and where.
    #[error("{0}")]
    Missing(String),
    /// Anything else, in words.
    #[error("{0}")]
    Refused(String),
}

/// A folder that a sweep is played in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepFolder(PathBuf);

impl SweepFolder {
    /// The place of a sweep of that name: in `sweeps` under the root of all runs.
    pub fn of(name: &str, out: Option<&Path>) -> Self {
        Self(runs_root(out).join(SWEEPS).join(name))
    }

    /// Returns whether there is one at `path`.
    pub fn is_at(path: &Path) -> bool {
        path.join(PLAN).is_file()
    }

    /// The folder of a sweep, by its path or its name, with its plan.
    ///
    /// # Errors
    /// There is none, or its plan cannot be read.
    pub fn open(name: &Path, out: Option<&Path>) -> Result<(Self, Plan), SweepError> {
        let places = [name.to_path_buf(), runs_root(out).join(SWEEPS).join(name)];
        let Some(path) = places.iter().find(|place| Self::is_at(place)) else {
            let places = places.each_ref().map(|place| place.display().to_string());
            let (name, places) = (name.display(), places.join(" or in "));
            return Err(SweepError::Missing(format!(
                "there is no sweep {name} (no {PLAN} in {places})"
            )));
        };
        let folder = Self(path.canonicalize().at(path)?);
        let plan = folder.plan()?;
        Ok((folder, plan))
    }

    /// The same folder, by a path that starts at the root.
    ///
    /// # Errors
    /// The present folder is not there.
    pub fn absolute(&self) -> Result<Self, SweepError> {
        Ok(Self(std::path::absolute(&self.0).at(&self.0)?))
    }

    /// Makes the folder, or takes it up where it was made for the same trials; with `extends` also where trials were added.
    ///
    /// # Errors
    /// A folder whose sweep is another one, which stays unchanged; one that can't be written.
    pub fn begin(&self, planned: &Planned, extends: bool) -> Result<(), SweepError> {
        match self.0.join(PLAN).try_exists().at(&self.0)? {
            true => self.take_up(planned, extends),
            false => self.create(planned).map_err(SweepError::Unwritten),
        }
    }

    fn create(&self, planned: &Planned) -> Result<(), FileError> {
        for folder in FOLDERS {
            let folder = self.0.join(folder);
            storage::create_dir_all(&folder).at(&folder)?;
        }
        self.write_plan(planned)?;
        sync_folder(&self.0).at(&self.0)
    }

    fn take_up(&self, planned: &Planned, extends: bool) -> Result<(), SweepError> {
        let old = self.plan()?;
        let difference = old.difference(&planned.plan);
        if difference.is_empty() {
            return Ok(());
        }
        let refused = |advice: &str| {
            let (path, difference) = (self.0.display(), difference.join("\n"));
            SweepError::Refused(format!(
                "{path} was begun with another sweep file; what would change:\n{difference}\n{advice}"
            ))
        };
        if !extends {
            return Err(refused(
                "give the sweep another name, or add to what has been played with --extend",
            ));
        }
        if !old.is_extended_by(&planned.plan) {
            return Err(refused(
                "--extend adds trials and changes the budget; it removes no trial and changes no decision: give the sweep \
                 another name",
            ));
        }
        self.write_plan(planned).map_err(SweepError::Unwritten)
    }

    /// The plan last: with it the sweep exists.
    fn write_plan(&self, planned: &Planned) -> Result<(), FileError> {
        let plan = serde_json::to_vec_pretty(&planned.plan).at(&self.0)?;
        let files = [
            ("sweep.ron", planned.text.as_bytes()),
            ("scenario.ron", planned.scenario.as_bytes()),
            (PLAN, &plan),
        ];
        for (name, content) in files {
            let path = self.0.join(name);
            replace_synced(&path, content).at(&path)?;
        }
        Ok(())
    }

    fn plan(&self) -> Result<Plan, SweepError> {
        let path = self.0.join(PLAN);
        let plan: Plan = serde_json::from_slice(&crate::files::read(&path).at(&path)?).at(&path)?;
        let why = if !plan.is_known() {
            "written by another version of simic-engine; collect it with that one".into()
        } else if let Some(trial) = plan.misnamed() {
            format!(
                "the trial of point {}, replicate {}, has the id {:?}; an id is the first 16 digits of the trial's hash, and no \
                 other trial has it",
                trial.point, trial.replicate, trial.id
            )
        } else {
            // Held to the ranges of its file: a rung after no rounds would never be passed.
            let sweep = ron::to_string(&plan.sweep).map_err(io::Error::other).at(&path)?;
            match read_declared::<SweepFile>("sweep", &sweep, &built_in_names()) {
                Ok(_) => return Ok(plan),
                Err(problems) => format!("the sweep in it cannot be played, read as RON:\n{problems}"),
            }
        };
        Err(SweepError::Refused(format!("{}: {why}", path.display())))
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Folder of all runs.
    pub fn trials(&self) -> PathBuf {
        self.0.join("trials")
    }

    /// The run of a trial.
    pub fn trial(&self, id: &str) -> PathBuf {
        self.trials().join(id)
    }

    /// Printed output of a trial's processes.
    pub fn log(&self, id: &str) -> PathBuf {
        self.0.join("logs").join(id).with_extension("log")
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// Names of the files in a folder, in order; none of a folder that is not there.
pub(super) fn names_in(folder: &Path) -> Result<BTreeSet<String>, FileError> {
    let names = match storage::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        names => names.at(folder)?,
    };
    Ok(names.iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

/// As [`replace_synced`], for files that workers of several machines may write at the same time: the last one counts, and
/// none meets half of another's.
pub(crate) fn replace_shared(path: &Path, content: &[u8]) -> std::io::Result<()> {
    storage::replace_by_way_of(&Worker::this().mark(), path, content)
}

#[cfg(test)]
mod tests;
