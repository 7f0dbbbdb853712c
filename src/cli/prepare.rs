//! From the arguments of `run` to a scenario that can run, before anything is touched.

use std::path::Path;

use super::output::Printer;
use super::rejection::Rejection;
use super::{Context, RunOptions, scenario_file};
use crate::engine::{Prepared, read_text};
use crate::record::ScenarioFile;
use crate::scenario::Override;
use crate::sweep::QUICKSTART;

/// Reads and checks the scenario under the flags.
///
/// # Errors
/// An unreadable file, a malformed `--set`, or a scenario with problems.
pub fn prepare(options: &RunOptions, context: &Context) -> Result<Prepared, Rejection> {
    let (overrides, catalog) = (options.overrides()?, &context.catalog);
    let (Some(path), Some(folder)) = (&options.scenario, &options.relative_to) else {
        return match &options.scenario {
            Some(path) => scenario_file::load(path, &overrides, catalog, &context.surroundings.input),
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
    scenario_file::load(path, &overrides, &context.catalog, &context.surroundings.input)
}

/// Says, of a start that failed, that the folder is gone in which the scenario's relative paths start: what it did not find
/// there is not missing, but has moved along.
pub fn explain_if_moved(folder: Option<&Path>, printer: &Printer) {
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        printer.note(format_args!(
            "the scenario's folder {} is not there any more; its relative paths start there: bring the folder back",
            folder.display()
        ));
    }
}
