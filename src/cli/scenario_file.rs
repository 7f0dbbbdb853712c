//! Scenarios as people name them: a path, or `-` for standard input. Of a file that is not there the message says which one
//! may have been meant.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::Input;
use super::rejection::Rejection;
use crate::engine::{LARGEST_TEXT, Prepared, SetupError};
use crate::scenario::{Catalog, Override, declares, nearest};
use crate::sweep::SweepFile;

const STANDARD_INPUT: &str = "-";
/// Where scenarios are kept.
const FOLDER: &str = "scenarios";
/// What `run` plays without a file.
const BUILT_IN: &str = "quickstart";

/// Reads and checks the scenario at `path`, or in `input`.
///
/// # Errors
/// What cannot be read; every problem of the scenario.
pub fn load(path: &Path, overrides: &[Override], catalog: &Catalog, input: &Input) -> Result<Prepared, Rejection> {
    if path == Path::new(STANDARD_INPUT) {
        let mut bytes = Vec::new();
        input
            .clone()
            .take(LARGEST_TEXT + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("cannot read the scenario from standard input: {error}"))?;
        return Ok(Prepared::from_bytes("standard input", bytes, overrides, catalog)?);
    }
    match Prepared::load(path, overrides, catalog) {
        Err(SetupError::Unreadable(error)) if !path.is_file() => {
            Err(format!("cannot read the scenario {error}; {}", help(path)).into())
        }
        Err(SetupError::Scenario(_)) if is_sweep(path) => {
            let path = path.display();
            Err(format!("{path} is a sweep file, no scenario; `simic-engine sweep {path} --dry-run` checks it").into())
        }
        loaded => Ok(loaded?),
    }
}

/// Whether a file says what only a sweep can say.
pub fn is_sweep(path: &Path) -> bool {
    path.is_file() && std::fs::read_to_string(path).is_ok_and(|text| declares::<SweepFile>(&text))
}

/// What may have been meant by a path that is no file.
fn help(path: &Path) -> String {
    // A device or a pipe may never end, or never begin.
    if path.exists() && !path.is_dir() {
        return "give a file, or `-` to read standard input".into();
    }
    if path.is_dir() {
        return match &scenarios_in(path)[..] {
            [] => "it is a folder; give a scenario file".into(),
            files => format!("it is a folder; give one of its files: {}", listed(files)),
        };
    }
    let mut files = Vec::new();
    for folder in folders(path) {
        let new = scenarios_in(&folder).into_iter().filter(|file| !files.contains(file));
        files.extend(new.collect::<Vec<_>>());
    }
    let word = stem(path);
    let same: Vec<PathBuf> = files.iter().filter(|file| stem(file) == word).cloned().collect();
    let stems: Vec<String> = files.iter().map(|file| stem(file)).collect();
    let alike = nearest(&word, stems.iter().map(String::as_str));
    let alike = files.iter().find(|file| alike.is_some_and(|alike| alike == stem(file)));
    match (&same[..], alike) {
        ([], Some(alike)) => format!("did you mean {}?", alike.display()),
        ([], None) if nearest(&word, [BUILT_IN]).is_some() => {
            "`simic-engine run` without a file plays the built-in quickstart".into()
        }
        ([], None) if files.is_empty() => format!("no scenario files (.ron) are near it, nor in {FOLDER}/"),
        ([], None) => format!("scenario files nearby: {}", listed(&files)),
        (same, _) => format!("did you mean {}?", join(same, " or ")),
    }
}

/// The folder that the path names, the one around it, and the usual one.
fn folders(path: &Path) -> [PathBuf; 3] {
    let here = PathBuf::from(".");
    let given = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let around = match given.map(Path::parent) {
        None => "..".into(),
        Some(Some(folder)) if !folder.as_os_str().is_empty() => folder.into(),
        Some(_) => here.clone(),
    };
    [given.map_or(here, PathBuf::from), around, FOLDER.into()]
}

/// The scenario files of a folder, by name; none where it cannot be read.
fn scenarios_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| match folder == Path::new(".") {
            true => entry.file_name().into(),
            false => entry.path(),
        })
        .filter(|file: &PathBuf| file.extension().is_some_and(|extension| extension == "ron") && file.is_file())
        .collect();
    files.sort_unstable();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn listed(files: &[PathBuf]) -> String {
    const NAMED: usize = 8;
    let more = files.len().saturating_sub(NAMED);
    let named = join(&files[..files.len() - more], ", ");
    if more > 0 {
        format!("{named} and {more} more")
    } else {
        named
    }
}

fn join(files: &[PathBuf], separator: &str) -> String {
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    names.join(separator)
}
