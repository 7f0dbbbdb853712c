//! Names on the command line: each stands for a sweep or a run.

use std::path::{Path, PathBuf};

use super::rejection::Rejection;
use crate::checkpoint::{PastRun, ResumeError};
use crate::record::{RunDirectory, find_run};
use crate::sweep::{Plan, SweepError, SweepFolder};

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
            Err(SweepError::Missing(_)) => Ok(Self::Run(find_run(name, out)?)),
            Err(error) => Err(error.into()),
        }
    }
}

/// The command that continues the run in `folder`, or the reason why it cannot be continued: it never advises a refused command.
pub fn way_on(folder: &Path) -> String {
    match PastRun::can_continue(folder) {
        Ok(()) => format!("continue with: simic-engine resume {}", folder.display()),
        Err(error) => format!("it cannot be continued: {error}"),
    }
}

/// Checks that no input lies in the output folder, whose content is removed.
///
/// # Errors
/// An input that does.
pub fn check_apart<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Rejection> {
    let place = output.canonicalize().ok();
    for input in inputs {
        if place
            .as_ref()
            .is_some_and(|place| input.canonicalize().is_ok_and(|input| input.starts_with(place)))
        {
            let (input, output) = (input.display(), output.display());
            return Err(format!("{input} is in {output}, which the result replaces: give another folder").into());
        }
    }
    Ok(())
}

/// Checks that the output lies in no folder of data, where it would be taken for data.
///
/// # Errors
/// The folder in which it does.
pub fn check_outside<'a>(output: &Path, data: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Rejection> {
    let absolute = std::path::absolute(output).unwrap_or_default();
    let place = absolute.ancestors().find_map(|part| part.canonicalize().ok());
    for data in data {
        if place
            .as_ref()
            .is_some_and(|place| data.canonicalize().is_ok_and(|data| place.starts_with(&data)))
        {
            let (output, data) = (output.display(), data.display());
            return Err(format!("{output} is in the data {data}: give a folder outside").into());
        }
    }
    Ok(())
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
