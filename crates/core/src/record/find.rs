//! Runs as people name them: by a folder, by a name in the folder of all runs, by the beginning of one, or as `latest`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::{RunDirectory, runs_root};
use crate::files::{follow_latest, listed_first, name_of};
use crate::scenario::nearest;

/// Runs that a message names.
const NAMED: usize = 3;

/// The reason why a run was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum FindRunError {
    /// Nothing is called so.
    #[error("there is no run {run}{}", missing(folder, near, *has_folder))]
    None {
        run: String,
        folder: PathBuf,
        has_folder: bool,
        near: Vec<String>,
    },
    /// Several runs begin so.
    #[error("{run} may be any of {} runs in {}: {}; write more of its name", .candidates.len(), folder.display(), listed_first(NAMED, candidates))]
    Ambiguous {
        run: String,
        folder: PathBuf,
        candidates: Vec<String>,
    },
    /// `latest` names a run that has been removed.
    #[error("the newest run in {} was {id}, which no longer exists; {}", folder.display(), way_to_list(folder))]
    LatestGone { id: String, folder: PathBuf },
}

fn missing(folder: &Path, near: &[String], has_folder: bool) -> String {
    let place = folder.display();
    if !has_folder {
        return format!(": the folder {place} does not exist; --out DIR names another folder of runs");
    }
    let meant = match near {
        [] => String::new(),
        near => format!("did you mean {}? ", near.join(" or ")),
    };
    format!(" in {place}; {meant}{}", way_to_list(folder))
}

/// The command that lists the runs of a folder.
fn way_to_list(folder: &Path) -> String {
    let mut command = String::from("`simic-engine runs");
    if folder != runs_root(None) {
        _ = write!(command, " --out {}", folder.display());
    }
    command + "` lists them all"
}

/// The folder of the run that people call `run`: a folder, the name of one in the folder of all runs (see [`runs_root`]),
/// the beginning of such a name if no other begins so, or `latest`. Whether it holds a run is for those to say who read it.
///
/// # Errors
/// Nothing of that name, or more than one run.
pub fn find_run(run: &Path, out: Option<&Path>) -> Result<PathBuf, FindRunError> {
    let root = runs_root(out);
    let places = [run.to_path_buf(), root.join(run)];
    let folders = places.each_ref().map(|place| follow_latest(place));
    let is_run = |place: &&PathBuf| RunDirectory::is_at(place);
    let found = folders
        .iter()
        .find(is_run)
        .or_else(|| folders.iter().find(|place| place.is_dir()));
    if let Some(found) = found {
        return Ok(found.clone());
    }
    if let Some((_, gone)) = places.iter().zip(&folders).find(|(place, leads_to)| place != leads_to) {
        return Err(FindRunError::LatestGone {
            id: name_of(gone),
            folder: gone.parent().unwrap_or(gone).into(),
        });
    }
    by_beginning(run, root)
}

/// A path with folders in it is looked for where it points, a name in `root`.
fn by_beginning(run: &Path, root: PathBuf) -> Result<PathBuf, FindRunError> {
    let folder = match run.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => root,
    };
    let name = name_of(run);
    // Tables write a name that is too long for them like this.
    let beginning = name.trim_end_matches('…');
    let names = runs_in(&folder);
    let candidates: Vec<String> = names.iter().filter(|id| id.starts_with(beginning)).cloned().collect();
    let run = run.display().to_string();
    match &candidates[..] {
        [] => Err(FindRunError::None {
            run,
            near: near(beginning, &names),
            has_folder: folder.is_dir(),
            folder,
        }),
        [only] => Ok(folder.join(only)),
        _ => Err(FindRunError::Ambiguous {
            run,
            folder,
            candidates,
        }),
    }
}

/// Names of the runs in a folder, the newest first.
fn runs_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| RunDirectory::is_at(&entry.path()) && !entry.path().is_symlink())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    names
}

/// Runs that may have been meant: those that hold the word, else the one that looks most like it.
fn near(word: &str, names: &[String]) -> Vec<String> {
    let lower = word.to_ascii_lowercase();
    let holding = names.iter().filter(|id| id.contains(&lower)).take(NAMED);
    let holding: Vec<String> = holding.cloned().collect();
    if !holding.is_empty() && !lower.is_empty() {
        return holding;
    }
    let slug = |id: &String| id.split('-').skip(2).collect::<Vec<_>>().join("-");
    let slugs: Vec<String> = names.iter().map(slug).collect();
    let words = names.iter().chain(&slugs).map(String::as_str);
    let Some(nearest) = nearest(word, words) else {
        return Vec::new();
    };
    let is_meant = |id: &&String| id.ends_with(nearest);
    names.iter().find(is_meant).cloned().into_iter().collect()
}

#[cfg(test)]
mod tests;
