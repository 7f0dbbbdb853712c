//! `run`: play a scenario, or say what would be played; `resume` plays through here as well.

use std::collections::BTreeMap;

use serde::Serialize;

use super::output::{show, show_json};
use super::{GlobalOptions, Outcome, Prepared, RunOptions};
use crate::learner::PolicyDiverged;
use crate::run::{Extension, Labels, LogFile, RunPlan, RunReport, run, stop_on_signals};
use crate::scenario::{Loaded, Scenario, TaskSpec, resolved_ron};
use crate::telemetry::RunFinished;
use crate::telemetry::sinks::{Console, ProgressStyle, Terminal};

/// What every run of this process shares.
pub struct Surroundings {
    pub terminal: Terminal,
    pub log: LogFile,
    pub extend: Extension,
}

/// Plays `plan`; the summary goes to stdout. `origins` says where each value that is no default comes from.
pub fn play(
    plan: RunPlan,
    origins: &BTreeMap<String, String>,
    global: &GlobalOptions,
    around: &Surroundings,
) -> Outcome {
    let plan = RunPlan {
        log: around.log.clone(),
        extend: around.extend,
        ..plan
    };
    if let Err(error) = stop_on_signals(plan.stop.clone()) {
        eprintln!("error: no handlers for signals: {error}");
        return Outcome::Rejected;
    }
    let report = match run(&plan) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("error: {error}");
            return Outcome::Rejected;
        }
    };
    print(&report, origins, global);
    outcome(&report, plan.scenario.telemetry.require)
}

fn outcome(report: &RunReport, requires_records: bool) -> Outcome {
    match (&report.failure, report.stopped_by) {
        (Some(_), _) if report.record.is_none() => Outcome::Rejected,
        (Some(error), _) if error.failure.cause::<PolicyDiverged>().is_some() => Outcome::Halted,
        (Some(_), _) => Outcome::Failed,
        (None, _) if !report.failed_durable.is_empty() && requires_records => Outcome::RecordIncomplete,
        (None, Some(request)) => Outcome::Stopped(request),
        (None, None) => Outcome::Done,
    }
}

pub fn plan(prepared: &Prepared, options: &RunOptions, global: &GlobalOptions, around: &Surroundings) -> RunPlan {
    let mut plan = RunPlan::new(prepared.loaded.clone(), &prepared.text);
    plan.path.clone_from(&prepared.path);
    plan.out.clone_from(&options.out);
    if let Some(threads) = global.threads {
        plan.threads = threads.into();
    }
    plan.console = console(options.progress, global, around);
    plan.labels.tags.clone_from(&options.tags);
    if options.identify {
        plan.labels = Labels::identified(plan.labels);
    }
    plan
}

pub fn console(progress: ProgressStyle, global: &GlobalOptions, around: &Surroundings) -> Console {
    Console {
        style: if global.quiet { ProgressStyle::None } else { progress },
        color: global.color,
        terminal: around.terminal.clone(),
    }
}

/// The end of a run, for programs to read.
#[derive(Serialize)]
struct End<'a> {
    run_id: &'a str,
    directory: String,
    #[serde(flatten)]
    finished: Option<&'a RunFinished>,
    failed_sinks: &'a [String],
    /// Where each value that is no default comes from, by path.
    origins: &'a BTreeMap<String, String>,
}

fn print(report: &RunReport, origins: &BTreeMap<String, String>, global: &GlobalOptions) {
    match &report.record {
        Some(record) if global.json => show_json(&End {
            run_id: &record.run_id,
            directory: record.directory.display().to_string(),
            finished: record.finished.as_ref(),
            failed_sinks: &report.failed_durable,
            origins,
        }),
        Some(record) => show(&record.summary),
        None => {}
    }
    for sink in &report.failed_durable {
        eprintln!("error: the record of `{sink}` is incomplete");
    }
    if let Some(failure) = &report.failure {
        eprintln!("error: {failure}");
    }
    if let (Some(_), Some(record)) = (report.stopped_by, &report.record) {
        let directory = record.directory.display();
        eprintln!("stopped as asked; go on with: simic-engine resume {directory}");
    }
}

/// What would be played, for programs to read.
#[derive(Serialize)]
struct Preview<'a> {
    scenario: &'a Scenario,
    task: &'a TaskSpec,
    /// Per round, where the data's size is known beforehand.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_per_round: Option<usize>,
    origins: &'a BTreeMap<String, String>,
}

/// Prints what would be played: the amount of work, then the scenario with everything resolved.
pub fn dry_run(prepared: &Prepared, global: &GlobalOptions) -> Outcome {
    let loaded = &prepared.loaded;
    if global.json {
        show_json(&Preview {
            scenario: &loaded.scenario,
            task: &loaded.task,
            samples_per_round: Work::of(loaded).map(|work| work.samples),
            origins: &loaded.origins,
        });
        return Outcome::Done;
    }
    match resolved_ron(&loaded.scenario) {
        Ok(text) => {
            show(format_args!("{}\n{text}\n", headline(loaded)));
            Outcome::Done
        }
        Err(error) => {
            eprintln!("error: the scenario cannot be written: {error}");
            Outcome::Failed
        }
    }
}

/// The samples that a round costs (spec 06 §2).
struct Work {
    /// Per env and step.
    train: usize,
    val: usize,
    /// Of all envs and steps.
    samples: usize,
}

impl Work {
    /// `None` where the data's size is not known beforehand.
    fn of(loaded: &Loaded) -> Option<Self> {
        let (run, task) = (&loaded.scenario.run, &loaded.task);
        let sizes = task.data.part_sizes(&task.split)?;
        let train = task.train_batches(sizes.train, run.n_envs) * task.batch_size;
        let val = sizes.val;
        Some(Self {
            train,
            val,
            samples: run.n_envs * task.max_steps as usize * (train + val),
        })
    }
}

/// One line, as a RON comment.
fn headline(loaded: &Loaded) -> String {
    let (run, task) = (&loaded.scenario.run, &loaded.task);
    let work = Work::of(loaded).map_or_else(String::new, |work| {
        let Work { train, val, samples } = work;
        format!(", {samples} samples a round ({train} to train and {val} to validate, per env and step)")
    });
    format!(
        "// {}: {} rounds of {} envs x {} steps{work}",
        task.name, run.rounds, run.n_envs, task.max_steps
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::{EngineError, Failure, Position};
    use crate::run::{RunRecord, StopRequest};

    fn report(failure: Option<Failure>, stopped_by: Option<StopRequest>, failed_durable: &[&str]) -> RunReport {
        RunReport {
            record: Some(RunRecord {
                run_id: "test".into(),
                directory: "runs/test".into(),
                finished: None,
                summary: String::new(),
            }),
            failure: failure.map(|failure| EngineError {
                phase: "test",
                position: Position::default(),
                failure,
            }),
            stopped_by,
            failed_durable: failed_durable.iter().map(ToString::to_string).collect(),
        }
    }

    /// Spec 07 §22, spec 06 §14.
    #[test]
    fn every_end_of_a_run_has_its_exit_code() {
        let diverged = || Failure::from(PolicyDiverged { failures: 3 });
        let broken = || Failure::message("out of memory");
        let interrupt = Some(StopRequest::Interrupt);

        assert_eq!(outcome(&report(None, None, &[]), true), Outcome::Done);
        assert_eq!(outcome(&report(Some(broken()), None, &[]), true), Outcome::Failed);
        assert_eq!(outcome(&report(Some(diverged()), None, &[]), true), Outcome::Halted);
        assert_eq!(
            outcome(&report(None, None, &["jsonl"]), true),
            Outcome::RecordIncomplete
        );
        assert_eq!(outcome(&report(None, None, &["jsonl"]), false), Outcome::Done);
        assert_eq!(
            outcome(&report(None, interrupt, &[]), true),
            Outcome::Stopped(StopRequest::Interrupt)
        );
        let before_its_record = RunReport {
            record: None,
            ..report(Some(broken()), None, &[])
        };
        assert_eq!(outcome(&before_its_record, true), Outcome::Rejected);
        assert_eq!(
            outcome(&report(Some(broken()), interrupt, &["jsonl"]), true),
            Outcome::Failed,
            "the failure counts first"
        );
    }
}
