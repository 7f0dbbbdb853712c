//! `validate` and `reward-audit`: problems of scenarios, and of their rewards.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::prepare::{self, is_sweep, prepare_file};
use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::engine::Prepared;
use crate::files::counted;
use crate::report::{audit_text, exploited};
use crate::reward::audit;
use crate::run;
use crate::scenario::{Loaded, ProblemRow, Report};
use crate::sweep::plan;

/// The verdict on one file, for programs to read.
#[derive(Serialize)]
struct ValidateResult {
    file: String,
    is_valid: bool,
    problems: Vec<ProblemRow>,
    /// The reason why the file could not be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A file without errors.
struct Sound {
    /// Warnings about a scenario.
    warnings: Option<Report>,
    /// Description of the run or sweep.
    text: String,
}

/// Checks every file, and unless `no_data` asks for less, the data and devices that it names; each good one gets a line on
/// stdout, each bad one its problems on stderr. With `--json` all of it is one list on stdout.
pub fn validate(files: &[PathBuf], no_data: bool, context: &Context) -> Outcome {
    let checked = files.iter().map(|path| (path.as_path(), load(path, no_data, context)));
    let checked: Vec<_> = checked.collect();
    let shown = if context.global.json {
        let verdicts: Vec<ValidateResult> = checked.iter().map(|(path, result)| verdict(path, result)).collect();
        context.printer.show_json(&verdicts)
    } else {
        let printed = checked.iter().map(|(path, result)| print(path, result, context));
        printed.fold(Outcome::Done, Outcome::unless_done)
    };
    match checked.iter().all(|(_, result)| result.is_ok()) {
        true => shown,
        false => Outcome::Rejected,
    }
}

fn load(path: &Path, no_data: bool, context: &Context) -> Result<Sound, Rejection> {
    let catalog = match no_data {
        true => context.names.catalog.without_images(),
        false => context.names.catalog.clone(),
    };
    if is_sweep(path) {
        let trials = plan(path, &[], &catalog)?.plan.trials.len();
        let text = format!("a sweep of {}", counted(trials, "trial"));
        return Ok(Sound { warnings: None, text });
    }
    let prepared = prepare::load(path, &[], &catalog, &context.surroundings.input)?;
    if !no_data {
        check_place(path, &prepared, context)?;
    }
    let Loaded {
        scenario,
        task,
        warnings,
        ..
    } = prepared.loaded;
    let (run, steps) = (&scenario.run, task.max_steps);
    let (envs, rounds) = (counted(run.n_envs, "env"), counted(run.rounds, "round"));
    let text = format!("{} with {envs}, {rounds} of {steps} steps", task.name);
    let warnings = Some(warnings).filter(|warnings| !warnings.problems.is_empty());
    Ok(Sound { warnings, text })
}

/// Checks the needs of a run of the scenario at its start.
fn check_place(path: &Path, prepared: &Prepared, context: &Context) -> Result<(), Rejection> {
    let engine = context
        .engine()
        .build_experiment(prepared.experiment(context.threads()))?;
    let found = run::check_place(engine.world());
    let path = path.display();
    Ok(found.map_err(|failure| format!("{path}: {failure} (--no-data checks the scenario alone)"))?)
}

fn print(path: &Path, result: &Result<Sound, Rejection>, context: &Context) -> Outcome {
    let Sound { warnings, text } = match result {
        Ok(sound) => sound,
        Err(rejection) => return rejection.print(context.printer),
    };
    warnings.iter().for_each(|warnings| context.printer.report(warnings));
    match context.global.quiet {
        true => Outcome::Done,
        false => context.printer.show(format_args!("{}: ok, {text}\n", path.display())),
    }
}

fn verdict(path: &Path, result: &Result<Sound, Rejection>) -> ValidateResult {
    let (problems, error) = match result {
        Ok(sound) => (sound.warnings.as_ref().map_or_else(Vec::new, Report::rows), None),
        Err(Rejection::Scenario(report)) => (report.rows(), None),
        Err(Rejection::Usage(message) | Rejection::Failed(message)) => (Vec::new(), Some(message.clone())),
    };
    ValidateResult {
        file: path.display().to_string(),
        is_valid: result.is_ok(),
        problems,
        error,
    }
}

/// Plays the scripted exploiters against the reward of a scenario, and says by how much each earns too much.
///
/// # Errors
/// A scenario with problems; a reward that cannot be computed.
pub fn reward_audit(scenario: &Path, sets: &[String], context: &Context) -> Result<Outcome, Rejection> {
    let loaded = prepare_file(scenario, sets, context)?.loaded;
    let audit = audit(&loaded.scenario, &loaded.task, &context.names.rewards)?;
    let printer = context.printer;
    let shown = printer.show_either(&audit, || audit_text(&audit, printer.width()));
    let Some(failed) = audit.first_failure() else {
        return Ok(shown);
    };
    printer.note(format_args!(
        "reward {} can be exploited: {}",
        audit.mode,
        exploited(failed, &audit)
    ));
    Ok(shown.unless_done(Outcome::Found))
}
