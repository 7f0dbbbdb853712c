//! `run`: play a scenario, or say what would be played.

use std::num::NonZero;
use std::thread::available_parallelism;

use tracing_subscriber::EnvFilter;

use super::{ColourChoice, GlobalOptions, Outcome, Prepared, ProgressStyle, RunOptions};
use crate::run::{RunPlan, run};
use crate::scenario::{TaskSpec, resolved_ron};
use crate::telemetry::sinks::{self, ColorChoice};

/// Plays the prepared scenario; the summary goes to stdout.
pub fn play(prepared: &Prepared, options: &RunOptions, global: &GlobalOptions) -> Outcome {
    start_log(global);
    let report = match run(&plan(prepared, options, global)) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("error: {error}");
            return Outcome::Rejected;
        }
    };
    if let Some(summary) = &report.summary {
        print!("{summary}");
    }
    for sink in &report.failed_durable {
        eprintln!("error: the record of `{sink}` is incomplete");
    }
    match &report.failure {
        Some(failure) => {
            eprintln!("error: {failure}");
            if report.began {
                Outcome::Failed
            } else {
                Outcome::Rejected
            }
        }
        None if !report.failed_durable.is_empty() && prepared.scenario.telemetry.require => Outcome::RecordIncomplete,
        None => Outcome::Done,
    }
}

fn plan(prepared: &Prepared, options: &RunOptions, global: &GlobalOptions) -> RunPlan {
    let cores = available_parallelism().map_or(1, NonZero::get);
    RunPlan {
        scenario: prepared.scenario.clone(),
        task: prepared.task.clone(),
        slots: prepared.slots.clone(),
        source: prepared.text.clone(),
        path: prepared.path.clone(),
        out: options.out.clone(),
        threads: global.threads.map_or(cores, usize::from),
        progress: match options.progress {
            _ if global.quiet => sinks::ProgressStyle::None,
            ProgressStyle::Auto => sinks::ProgressStyle::Auto,
            ProgressStyle::Bar => sinks::ProgressStyle::Bar,
            ProgressStyle::Plain => sinks::ProgressStyle::Plain,
            ProgressStyle::Json => sinks::ProgressStyle::Json,
            ProgressStyle::None => sinks::ProgressStyle::None,
        },
        color: match global.color {
            ColourChoice::Auto => ColorChoice::Auto,
            ColourChoice::Always => ColorChoice::Always,
            ColourChoice::Never => ColorChoice::Never,
        },
    }
}

/// Logs go to stderr; `RUST_LOG` wins over `-q` and `-v`.
fn start_log(global: &GlobalOptions) {
    let default = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, _) => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .without_time()
        .init();
}

/// Prints what would be played: the amount of work, then the scenario with everything resolved.
pub fn dry_run(prepared: &Prepared, _: &RunOptions, _: &GlobalOptions) -> Outcome {
    match resolved_ron(&prepared.scenario) {
        Ok(text) => {
            println!("{}\n{text}", work(prepared, &prepared.task));
            Outcome::Done
        }
        Err(error) => {
            eprintln!("error: the scenario cannot be written: {error}");
            Outcome::Failed
        }
    }
}

/// One line, as a RON comment, on the samples that a round costs (spec 06 §2).
fn work(prepared: &Prepared, task: &TaskSpec) -> String {
    let run = &prepared.scenario.run;
    let Some(sizes) = task.data.part_sizes(&task.split) else {
        return format!(
            "// {}: {} rounds of {} envs x {} steps",
            task.name, run.rounds, run.n_envs, task.max_steps
        );
    };
    let (train, val) = (task.train_batches(sizes.train, run.n_envs) * task.batch_size, sizes.val);
    let samples = run.n_envs * task.max_steps as usize * (train + val);
    format!(
        "// {}: {} rounds of {} envs x {} steps, {samples} samples a round ({train} to train and {val} to validate, \
         per env and step)",
        task.name, run.rounds, run.n_envs, task.max_steps
    )
}
