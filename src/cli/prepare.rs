//! From arguments to a scenario that can run, before anything is touched: by its path, or `-` for standard input. Of a file that is
//! not there the message says which one may have been meant.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::output::Printer;
use super::rejection::Rejection;
use super::{Context, Input, RunOptions};
use crate::engine::{LARGEST_TEXT, Prepared, SetupError, read_text};
use crate::files::listed_first;
use crate::record::ScenarioFile;
use crate::scenario::{Catalog, Override, declares, nearest};
use crate::sweep::{QUICKSTART, SweepFile};

/// Reads and checks the scenario under the flags.
///
/// # Errors
/// An unreadable file, a malformed `--set`, or a scenario with problems.
pub fn prepare(options: &RunOptions, context: &Context) -> Result<Prepared, Rejection> {
    let (overrides, catalog) = (options.overrides()?, &context.names.catalog);
    let (Some(path), Some(folder)) = (&options.scenario, &options.relative_to) else {
        return match &options.scenario {
            Some(path) => load(path, &overrides, catalog, &context.surroundings.input),
            None => Ok(Prepared::from_ron("quickstart.ron", QUICKSTART, &overrides, catalog)?),
        };
    };
    let found = folder.canonicalize();
    let found =
        found.map_err(|error| format!("--relative-to {}: there is no such folder: {error}", folder.display()))?;
    let file = ScenarioFile {
        path: Some(path.clone()),
        folder: Some(found),
        text: read_text(path)?,
    };
    Ok(Prepared::new(&path.display().to_string(), file, &overrides, catalog)?)
}

/// Reads and checks the scenario at `path` under assignments as `--set` has them.
///
/// # Errors
/// Those of [`prepare`].
pub fn prepare_file(path: &Path, sets: &[String], context: &Context) -> Result<Prepared, Rejection> {
    let overrides: Vec<Override> = sets.iter().map(|set| Override::parse(set)).collect::<Result<_, _>>()?;
    load(path, &overrides, &context.names.catalog, &context.surroundings.input)
}

/// Says, of a start that failed, that the folder is gone in which the scenario's relative paths start: what it did not find
/// there is not missing, but has moved along.
pub fn explain_if_moved(folder: Option<&Path>, printer: &Printer) {
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        printer.note(format_args!(
            "the scenario's folder {} is missing, and its relative paths start there; bring the folder back",
            folder.display()
        ));
    }
}

const STANDARD_INPUT: &str = "-";
/// The folders of scenarios.
const FOLDER: &str = "scenarios";

/// Reads and checks the scenario at `path`, or in `input`.
///
/// # Errors
/// A scenario that cannot be read; every problem in the scenario.
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
            Err(format!("{path} is a sweep file; `simic-engine sweep {path} --dry-run` checks it").into())
        }
        loaded => Ok(loaded?),
    }
}

/// Returns whether a file has fields of a sweep.
pub fn is_sweep(path: &Path) -> bool {
    path.is_file() && std::fs::read_to_string(path).is_ok_and(|text| declares::<SweepFile>(&text))
}

/// Hints for a path without a file.
fn help(path: &Path) -> String {
    if path.is_dir() {
        return format!(
            "it is a folder; give one of its files: {}",
            listed(&scenarios_in(&[path]))
        );
    }
    // A device or a pipe may never end, or never begin.
    if path.exists() {
        return "give a file, or `-` to read standard input".into();
    }
    let here = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let files = scenarios_in(&[here.unwrap_or(Path::new(".")), Path::new(FOLDER)]);
    let stems: Vec<String> = files.iter().map(|file| stem(file)).collect();
    let meant = nearest(&stem(path), stems.iter().map(String::as_str));
    match files.iter().find(|file| meant.is_some_and(|meant| meant == stem(file))) {
        Some(file) => format!("did you mean {}?", file.display()),
        None => format!("scenario files nearby: {}", listed(&files)),
    }
}

/// The scenario files of folders, by name; none where one cannot be read.
fn scenarios_in(folders: &[&Path]) -> Vec<PathBuf> {
    let entries = folders.iter().flat_map(std::fs::read_dir).flatten().flatten();
    let files = entries.map(|entry| entry.path().strip_prefix(".").map_or(entry.path(), PathBuf::from));
    let is_scenario = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "ron") && file.is_file();
    let files: BTreeSet<PathBuf> = files.filter(is_scenario).collect();
    files.into_iter().collect()
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase()
}

/// The first of them.
fn listed(files: &[PathBuf]) -> String {
    match files {
        [] => "none".into(),
        files => listed_first(8, files.iter().map(|file| file.display())),
    }
}
