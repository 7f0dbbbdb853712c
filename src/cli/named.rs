//! What a name of the command line stands for: a sweep, or a run.

use std::path::{Path, PathBuf};

use super::rejection::Rejection;
use crate::checkpoint::{PastRun, ResumeError};
use crate::record::{RunDirectory, find_run};
use crate::sweep::{FolderError, Plan, SweepFolder};

/// Something that was recorded.
pub enum Named {
    Sweep(SweepFolder, Box<Plan>),
    /// Its folder.
    Run(PathBuf),
}

impl Named {
    /// # Errors
    /// Neither is called so; a sweep whose plan cannot be read.
    pub fn find(name: &Path, out: Option<&Path>) -> Result<Self, Rejection> {
        match SweepFolder::open(name, out) {
            Ok((folder, plan)) => Ok(Self::Sweep(folder, Box::new(plan))),
            Err(FolderError::Missing { .. }) => Ok(Self::Run(find_run(name, out)?)),
            Err(error) => Err(error.into()),
        }
    }
}

/// How the run in `folder` is continued, or why it cannot be: no command is advised that would refuse it.
pub fn way_on(folder: &Path) -> String {
    match PastRun::can_continue(folder) {
        Ok(()) => format!("continue with: simic-engine resume {}", folder.display()),
        Err(error) => format!("it cannot be continued: {error}"),
    }
}

/// Checks that nothing of what is read lies in a folder that is written, whose content goes.
///
/// # Errors
/// What does.
pub fn check_apart<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Rejection> {
    let Ok(place) = output.canonicalize() else {
        return Ok(());
    };
    let is_inside = |input: &&PathBuf| input.canonicalize().is_ok_and(|input| input.starts_with(&place));
    inputs.into_iter().find(is_inside).map_or(Ok(()), |input| {
        Err(Rejection::Usage(format!(
            "{} is in {}, which the result replaces: give another folder",
            input.display(),
            output.display()
        )))
    })
}

/// Checks that what is written lies in no folder of data, where it would be taken for data.
///
/// # Errors
/// The folder in which it does.
pub fn check_outside<'a>(output: &Path, data: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Rejection> {
    let absolute = std::path::absolute(output).unwrap_or_default();
    let Some(place) = absolute.ancestors().find_map(|part| part.canonicalize().ok()) else {
        return Ok(());
    };
    let holds = |data: &&PathBuf| data.canonicalize().is_ok_and(|data| place.starts_with(&data));
    data.into_iter().find(holds).map_or(Ok(()), |data| {
        let (output, data) = (output.display(), data.display());
        Err(Rejection::Usage(format!(
            "{output} is in the data {data}: give a folder outside"
        )))
    })
}

/// # Errors
/// A folder that holds no run.
pub fn held_run(place: PathBuf) -> Result<PathBuf, Rejection> {
    if RunDirectory::is_at(&place) {
        Ok(place)
    } else {
        Err(ResumeError::NoRun(place).into())
    }
}
