//! From the arguments of `run` to a scenario that can run, before anything is touched.

use std::path::Path;

use super::output::tell;
use super::rejection::Rejection;
use super::{Context, RunOptions, scenario_file};
use crate::engine::Prepared;
use crate::scenario::{AmpMode, Override};
use crate::sweep::QUICKSTART;

/// Reads and checks the scenario under environment and flags.
///
/// # Errors
/// An unreadable file, a malformed `--set`, or a scenario with problems.
pub fn prepare(options: &RunOptions, context: &Context) -> Result<Prepared, Rejection> {
    let mut overrides: Vec<Override> = environment().into_iter().collect();
    overrides.extend(options.overrides().map_err(Rejection::Usage)?);
    let mut prepared = match &options.scenario {
        Some(path) => scenario_file::load(path, &overrides, &context.catalog)?,
        None => Prepared::from_ron("quickstart.ron", QUICKSTART, &overrides, &context.catalog)?,
    };
    if let Some(by) = mixed_precision_switch() {
        prepared.loaded.switch_mixed_precision_off(&by);
    }
    if let Some(folder) = &options.relative_to {
        let found = folder.canonicalize().map_err(|error| {
            Rejection::Usage(format!(
                "--relative-to {}: there is no such folder: {error}",
                folder.display()
            ))
        })?;
        prepared.file.folder = Some(found);
    }
    Ok(prepared)
}

const AMP_VARIABLE: &str = "SIMIC_ENGINE_AMP";

/// What the environment sets in every scenario, unless a flag sets the same.
pub fn environment() -> Option<Override> {
    let value = amp_variable().filter(|value| value != AmpMode::Off.name())?;
    Some(Override::environment(AMP_VARIABLE, "training.amp", value))
}

/// The environment variable and value that switch mixed precision off, over presets, the file, flags and a resumed run.
pub fn mixed_precision_switch() -> Option<String> {
    let off = amp_variable().filter(|value| value == AmpMode::Off.name())?;
    Some(format!("{AMP_VARIABLE}={off}"))
}

fn amp_variable() -> Option<String> {
    std::env::var(AMP_VARIABLE).ok().filter(|value| !value.is_empty())
}

/// Says, of a start that failed, that the folder is gone in which the scenario's relative paths start: what it did not find
/// there is not missing, but has moved along.
pub fn explain_if_moved(folder: Option<&Path>) {
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        tell(format_args!(
            "the scenario's folder {} is not there any more; its relative paths start there: bring the folder back",
            folder.display()
        ));
    }
}
