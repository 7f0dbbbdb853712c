//! `sweep`: plan many trainings, run them here, look after them, collect their results.

mod launch;
mod status;
mod view;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::options::{Begun, PlayOptions, SweepCommand, SweepOptions};
use super::output::Printer;
use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::files::counted;
use crate::report::{merged, plan_table, sweep_text, write_sweep};
use crate::scenario::Override;
use crate::sweep::{
    Collected, Plan, Planned, Results, Shard, SweepError, SweepFolder, Trial, TrialEnd, WorkOptions, plan, try_again,
    try_misplaced_again, work,
};
use launch::launch;
use status::status;
use view::View;

/// Plans and plays, or runs the subcommand.
pub fn sweep(options: &SweepOptions, context: &Context) -> Result<Outcome, Rejection> {
    let Some(command) = &options.command else {
        return begin(&options.play, &[], context);
    };
    match command {
        SweepCommand::Status { begun, all } => status(begun, *all, context),
        SweepCommand::Work {
            begun,
            shard,
            trial,
            leave,
            parallel,
        } => {
            let (folder, plan) = open(begun)?;
            if let Some(id) = trial.as_ref().filter(|id| plan.trial(id).is_none()) {
                return Err(unknown_trial(id));
            }
            let pace = pace_of(*parallel, &plan, context);
            let options = WorkOptions {
                shard: *shard,
                only: trial.clone(),
                leaves: *leave,
                parallel: if trial.is_some() { 1 } else { pace.parallel },
                ..pace
            };
            play(&folder, &plan, &options, context)
        }
        SweepCommand::Collect { begun } => {
            let (folder, plan) = open(begun)?;
            collect(&folder, &plan, context)
        }
        SweepCommand::Retry { begun, trials } => retry(begun, trials, context.printer),
    }
}

fn open(begun: &Begun) -> Result<(SweepFolder, Plan), Rejection> {
    Ok(SweepFolder::open(&begun.sweep, begun.out.as_deref())?)
}

fn unknown_trial(id: &str) -> Rejection {
    Rejection::Usage(format!("the sweep has no trial {id}; `sweep status --all` lists them"))
}

fn pace_of(parallel: Option<u16>, plan: &Plan, context: &Context) -> WorkOptions {
    let budget = plan.sweep.budget;
    let parallel = parallel.map_or(budget.parallel, usize::from);
    let share = (context.threads() / parallel).max(1);
    WorkOptions {
        shard: Shard::WHOLE,
        only: None,
        parallel,
        threads: context
            .global
            .threads
            .map_or(budget.threads.unwrap_or(share), usize::from),
        leaves: false,
        commit: context.names.build.git_commit,
        program: context.surroundings.program.clone(),
    }
}

/// Plans and plays a sweep file, with `overrides` laid over all of its trials.
pub(super) fn begin(options: &PlayOptions, overrides: &[Override], context: &Context) -> Result<Outcome, Rejection> {
    let file = options.file.as_deref().unwrap_or(Path::new(""));
    let planned = plan(file, overrides, &context.names.catalog)?;
    let plan = &planned.plan;
    let work = pace_of(options.parallel, plan, context);
    if let Some(cluster) = options.launch.on {
        options.launch.check(cluster)?;
        return launch(options, cluster, &planned, &work, context);
    }
    if options.dry_run {
        let (printer, env_steps) = (context.printer, planned.env_steps);
        let preview = merged(json!({ "env_steps": env_steps }), plan);
        return Ok(printer.show_either(&preview, || {
            let table = plan_table(plan, printer.width());
            format!("{}\n{env_steps} env-steps to train\n\n{table}", headline(plan, &work))
        }));
    }
    let (folder, plan) = begin_folder(options, &planned)?;
    if !context.global.quiet {
        context.printer.note(format_args!(
            "{} in {}",
            headline(&plan, &work),
            folder.path().display()
        ));
    }
    if options.plan_only {
        return Ok(Outcome::Done);
    }
    try_misplaced_again(&folder, &plan).map_err(Rejection::failed)?;
    play(&folder, &plan, &work, context)
}

/// The folder of a sweep that begins; the command has failed where a part of it has been made, else it is refused.
fn begin_folder(options: &PlayOptions, planned: &Planned) -> Result<(SweepFolder, Plan), Rejection> {
    let folder = SweepFolder::of(&planned.plan.name, options.out.as_deref());
    let begun = folder
        .begin(planned, options.extend)
        .and_then(|()| SweepFolder::open(folder.path(), None));
    begun.map_err(|error| match error {
        SweepError::Unwritten(_) if folder.path().exists() => Rejection::failed(error),
        error => error.into(),
    })
}

/// `quick: 6 trials (2 points x 3 replicates), 2 at once with 1 thread each`
fn headline(plan: &Plan, work: &WorkOptions) -> String {
    let replicates = plan.sweep.replicates as usize;
    let points = plan.trials.len() / replicates;
    format!(
        "{}: {} ({} x {}), {} at once with {} each",
        plan.name,
        counted(plan.trials.len(), "trial"),
        counted(points, "point"),
        counted(replicates, "replicate"),
        work.parallel,
        counted(work.threads, "thread"),
    )
}

/// Works until nothing is left, then collects.
fn play(folder: &SweepFolder, plan: &Plan, options: &WorkOptions, context: &Context) -> Result<Outcome, Rejection> {
    let (printer, stop) = (context.printer, context.heeded_stop()?);
    let view = View::new(plan, context);
    let is_over = AtomicBool::new(false);
    let played = std::thread::scope(|scope| {
        scope.spawn(|| view.follow(folder, &is_over));
        let played = work(folder, plan, options, &stop, &|event| view.show_event(event));
        is_over.store(true, Ordering::Relaxed);
        played
    });
    view.clear();
    played.map_err(Rejection::failed)?;
    if let Some(request) = stop.requested() {
        printer.note(format_args!(
            "stopped as asked; continue with: simic-engine sweep work {}",
            folder.path().display()
        ));
        return Ok(Outcome::Stopped(request));
    }
    let results = Results::read(folder).map_err(Rejection::failed)?;
    let end = |trial: &Trial| results.end(&trial.id);
    if let Some(only) = &options.only {
        let has_failed = plan.trial(only).and_then(end) == Some(TrialEnd::Failed);
        return Ok(ended(has_failed, folder, printer));
    }
    let left = plan.trials.iter().filter(|trial| end(trial).is_none()).count();
    if options.leaves && left > 0 {
        printer.note(format_args!(
            "no trial is free; {left} of {} have not ended: simic-engine sweep status {}",
            plan.trials.len(),
            folder.path().display()
        ));
        return Ok(Outcome::Done);
    }
    collect(folder, plan, context)
}

fn collect(folder: &SweepFolder, plan: &Plan, context: &Context) -> Result<Outcome, Rejection> {
    let collected = Collected::read(folder, plan).map_err(Rejection::failed)?.judged(plan);
    let files = write_sweep(&collected, folder).map_err(Rejection::failed)?;
    let printer = context.printer;
    let shown = printer.show_either(&collected, || {
        let files: String = files.iter().map(|path| format!("{}\n", path.display())).collect();
        sweep_text(&collected, printer.width()) + &files
    });
    let failed = collected.trials.iter().filter_map(|trial| trial.result.as_ref());
    let has_failure = failed.into_iter().any(|result| result.end == TrialEnd::Failed);
    Ok(ended(has_failure, folder, printer).unless_done(shown))
}

/// Shows the trials that have ended so far, and writes nothing.
pub(super) fn show_results(folder: &SweepFolder, plan: &Plan, context: &Context) -> Result<Outcome, Rejection> {
    let collected = Collected::read(folder, plan)?.judged(plan);
    let printer = context.printer;
    Ok(printer.show_either(&collected, || sweep_text(&collected, printer.width())))
}

/// The end of a command when nothing is left to play: the same one again would play nothing.
fn ended(has_failure: bool, folder: &SweepFolder, printer: &Printer) -> Outcome {
    if !has_failure {
        return Outcome::Done;
    }
    printer.note(format_args!(
        "to try failed trials again: simic-engine sweep retry {}",
        folder.path().display()
    ));
    Outcome::Failed
}

fn retry(begun: &Begun, ids: &[String], printer: &Printer) -> Result<Outcome, Rejection> {
    let (folder, plan) = open(begun)?;
    let results = Results::read(&folder)?;
    let has_failed = |trial: &&Trial| results.end(&trial.id) == Some(TrialEnd::Failed);
    for id in ids {
        let found: Vec<&Trial> = plan
            .trials
            .iter()
            .filter(|trial| trial.id.starts_with(id.as_str()))
            .collect();
        match found[..] {
            [trial] if has_failed(&trial) => {}
            [_] => return Err(format!("trial {id} has not failed; only failed trials are tried again").into()),
            [] => return Err(unknown_trial(id)),
            _ => return Err(format!("{} trials begin with {id}; write more of it", found.len()).into()),
        }
    }
    let is_chosen = |trial: &&Trial| ids.is_empty() || ids.iter().any(|id| trial.id.starts_with(id.as_str()));
    let mut count = 0;
    for trial in plan.trials.iter().filter(is_chosen).filter(has_failed) {
        try_again(&folder, &trial.id, &results).map_err(Rejection::failed)?;
        count += 1;
    }
    Ok(printer.show(format_args!(
        "to be tried again: {count}; play them with: simic-engine sweep work {}\n",
        folder.path().display()
    )))
}
