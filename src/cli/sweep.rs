//! `sweep`: plan many trainings, play them here, look after them, collect what came of them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle as BarStyle};
use serde::Serialize;

use super::options::{Begun, Pace, PlayOptions, SweepCommand, SweepOptions};
use super::output::{show, show_json, tell, tell_error, width};
use super::prepare::environment;
use super::{Context, Outcome, report_text};
use crate::compare::Metric;
use crate::record::{RunStatus, Table};
use crate::run::{StopSignal, stop_on_signals};
use crate::sweep::{
    Cluster, Collected, FolderError, Launch, Plan, PlanError, Planned, Results, Shard, SweepFolder, SweepState, Told,
    Trial, TrialEnd, TrialResult, TrialState, WorkOptions, end_name, plan, read_result, try_again, work,
};

/// Trials that are listed one by one; of more only those are that play or have failed.
const LISTED: usize = 40;

/// Plans and plays, or does what the subcommand says.
pub fn sweep(options: &SweepOptions, context: &Context) -> Result<Outcome, String> {
    let Some(command) = &options.command else {
        return begin(&options.play, context);
    };
    match command {
        SweepCommand::Status { begun, all } => status(begun, *all, context),
        SweepCommand::Work {
            begun,
            shard,
            trial,
            leave,
            pace,
        } => {
            let (folder, plan) = open(begun)?;
            if let Some(id) = trial.as_ref().filter(|id| plan.trial(id).is_none()) {
                return Err(format!("the sweep has no trial {id}; `sweep status --all` lists them"));
            }
            let pace = pace_of(pace, &plan, context);
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
            Ok(collect(&folder, &plan, context))
        }
        SweepCommand::Retry { begun, trials } => retry(begun, trials, context),
    }
}

fn open(begun: &Begun) -> Result<(SweepFolder, Plan), String> {
    SweepFolder::open(&begun.sweep, begun.out.as_deref()).map_err(|error| error.to_string())
}

fn pace_of(pace: &Pace, plan: &Plan, context: &Context) -> WorkOptions {
    let budget = plan.sweep.budget;
    let parallel = pace.parallel.map_or(budget.parallel, usize::from);
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
    }
}

fn begin(options: &PlayOptions, context: &Context) -> Result<Outcome, String> {
    let file = options.file.as_deref().unwrap_or(Path::new(""));
    let environment: Vec<_> = environment().into_iter().collect();
    let planned = match plan(file, &environment, &context.catalog) {
        Ok(planned) => planned,
        Err(PlanError::File(report)) if context.global.json => {
            _ = show_json(&report.rows());
            return Ok(Outcome::Rejected);
        }
        Err(PlanError::File(report)) => {
            tell(report_text(&report, context.global));
            return Ok(Outcome::Rejected);
        }
        Err(error) => return Err(error.to_string()),
    };
    let plan = &planned.plan;
    let work = pace_of(&options.pace, plan, context);
    if let Some(cluster) = options.launch.on {
        options.launch.check(cluster)?;
        return launch(options, cluster, &planned, &work, context);
    }
    if options.dry_run {
        return Ok(if context.global.json {
            show_json(plan)
        } else {
            show(format_args!(
                "{}\n{}",
                headline(plan, &work),
                plan_table(plan).render_within(width(), &[])
            ))
        });
    }
    let (folder, plan) = match begin_folder(options, &planned) {
        Ok(begun) => begun,
        Err(error) => return not_begun(&error, options, plan, context),
    };
    if !context.global.quiet {
        tell(format_args!(
            "{} in {}",
            headline(&plan, &work),
            folder.path().display()
        ));
    }
    if options.plan_only {
        return Ok(Outcome::Done);
    }
    play(&folder, &plan, &work, context)
}

fn begin_folder(options: &PlayOptions, planned: &Planned) -> Result<(SweepFolder, Plan), FolderError> {
    let folder = SweepFolder::of(&planned.plan.name, options.out.as_deref());
    folder.begin(planned, options.extend)?;
    SweepFolder::open(folder.path(), None)
}

/// Where a part of the folder has been made, the command has failed; else it is refused.
fn not_begun(error: &FolderError, options: &PlayOptions, plan: &Plan, context: &Context) -> Result<Outcome, String> {
    let folder = SweepFolder::of(&plan.name, options.out.as_deref());
    match error {
        FolderError::Unwritten(_) if folder.path().exists() => Ok(failed(error, context)),
        error => Err(error.to_string()),
    }
}

/// Something went wrong once there were files of the sweep.
fn failed(error: impl Display, context: &Context) -> Outcome {
    tell_error(context.global, error);
    Outcome::Failed
}

/// Hands the sweep to an engine for many machines; with `--dry-run` shows what it would be handed.
fn launch(
    options: &PlayOptions,
    cluster: Cluster,
    planned: &Planned,
    work: &WorkOptions,
    context: &Context,
) -> Result<Outcome, String> {
    let (folder, plan) = if options.dry_run {
        let folder = SweepFolder::of(&planned.plan.name, options.out.as_deref());
        (
            folder.absolute().map_err(|error| error.to_string())?,
            planned.plan.clone(),
        )
    } else {
        match begin_folder(options, planned) {
            Ok(begun) => begun,
            Err(error) => return not_begun(&error, options, &planned.plan, context),
        }
    };
    let said = context.global.threads.map(usize::from);
    let launch = Launch {
        folder: &folder,
        plan: &plan,
        program: std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?,
        workers: options.launch.workers.map(|workers| workers as usize),
        parallel: work.parallel,
        threads: said.or(plan.sweep.budget.threads),
        gpus: planned.gpus,
        address: options.launch.address.clone(),
    };
    let command = launch.driver_command(cluster);
    if options.dry_run {
        let driver = command.map(|words| format!("python3 {}\n", words.join(" ")));
        return Ok(show(driver.unwrap_or_else(|| launch.slurm_script())));
    }
    if !context.global.quiet {
        tell(format_args!(
            "{}: {} trials in {}",
            plan.name,
            plan.trials.len(),
            folder.path().display()
        ));
    }
    if command.is_some() {
        launch.drive(cluster).map_err(|error| error.to_string())?;
        return Ok(collect(&folder, &plan, context));
    }
    let job = launch
        .submit(&options.launch.sbatch_options())
        .map_err(|error| error.to_string())?;
    let sweep = folder.path().display();
    let script = launch.slurm_path();
    tell(format_args!(
        "submitted as job {job}, {} workers\n\
         where it stands:      simic-engine sweep status {sweep}\n\
         its workers:          squeue --job {job}\n\
         what they print:      {sweep}/logs/slurm-{job}_*.log\n\
         what they have left:  sbatch {}\n\
         its tables:           simic-engine sweep collect {sweep}",
        launch.tasks(),
        script.display(),
    ));
    Ok(show(format_args!("{job}\n")))
}

/// `quick: 6 trials (2 points x 3 replicates), 2 at once with 1 thread each`
fn headline(plan: &Plan, work: &WorkOptions) -> String {
    let replicates = plan.sweep.replicates as usize;
    let points = plan.trials.len() / replicates;
    let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    format!(
        "{}: {} ({} x {}), {} at once with {} each",
        plan.name,
        plural(plan.trials.len(), "trial"),
        plural(points, "point"),
        plural(replicates, "replicate"),
        work.parallel,
        plural(work.threads, "thread"),
    )
}

fn plan_table(plan: &Plan) -> Table {
    let mut table = Table::new(&["trial", "settings"], &["seed", "rounds"]);
    for trial in &plan.trials {
        table.push(vec![
            trial.id.clone(),
            trial.label(),
            trial.seed.0.to_string(),
            trial.rounds.to_string(),
        ]);
    }
    table
}

/// Works until nothing is left, then collects.
fn play(folder: &SweepFolder, plan: &Plan, options: &WorkOptions, context: &Context) -> Result<Outcome, String> {
    let stop = StopSignal::default();
    stop_on_signals(stop.clone()).map_err(|error| format!("the system has no handlers for signals: {error}"))?;
    let view = View::new(plan, context);
    let is_over = AtomicBool::new(false);
    let played = std::thread::scope(|scope| {
        scope.spawn(|| view.follow(folder, &is_over));
        let played = work(folder, plan, options, &stop, &|told| view.tell(told));
        is_over.store(true, Ordering::Relaxed);
        played
    });
    view.clear();
    if let Err(error) = played {
        return Ok(failed(error, context));
    }
    if let Some(request) = stop.requested() {
        tell(format_args!(
            "stopped as asked; go on with: simic-engine sweep work {}",
            folder.path().display()
        ));
        return Ok(Outcome::Stopped(request));
    }
    let results = match Results::read(folder) {
        Ok(results) => results,
        Err(error) => return Ok(failed(error, context)),
    };
    let end = |trial: &Trial| results.end(&trial.id);
    if let Some(only) = &options.only {
        let has_failed = plan.trial(only).and_then(end) == Some(TrialEnd::Failed);
        return Ok(if has_failed { Outcome::Failed } else { Outcome::Done });
    }
    let left = plan.trials.iter().filter(|trial| end(trial).is_none()).count();
    if options.leaves && left > 0 {
        tell(format_args!(
            "nothing is free; {left} of {} trials have not ended: simic-engine sweep status {}",
            plan.trials.len(),
            folder.path().display()
        ));
        return Ok(Outcome::Done);
    }
    Ok(collect(folder, plan, context))
}

fn collect(folder: &SweepFolder, plan: &Plan, context: &Context) -> Outcome {
    let written = Collected::read(folder, plan).and_then(|collected| Ok((collected.write(folder)?, collected)));
    let (files, collected) = match written {
        Ok(written) => written,
        Err(error) => return failed(error, context),
    };
    let shown = if context.global.json {
        show_json(&collected)
    } else {
        let mut text = results_table(&collected).render_within(width(), &["minus rent"]);
        for path in files {
            text.push_str(&format!("{}\n", path.display()));
        }
        show(text)
    };
    let failed = collected.trials.iter().filter_map(|trial| trial.result.as_ref());
    let has_failure = failed.into_iter().any(|result| result.end == TrialEnd::Failed);
    if has_failure { Outcome::Failed } else { Outcome::Done }.unless_done(shown)
}

fn results_table(collected: &Collected) -> Table {
    let mut table = Table::new(
        &["trial", "settings", "state"],
        &["seed", "rounds", "accuracy", "minus rent", "s"],
    );
    for trial in &collected.trials {
        let result = trial.result.as_ref();
        let training = result.and_then(|result| result.training.as_ref());
        let score = |metric| training.and_then(|training| training.score(metric));
        let number = |value: Option<f64>| value.map_or_else(|| "—".into(), |value| format!("{value:.2}"));
        table.push(vec![
            short(&trial.trial.id),
            trial.trial.label(),
            result.map_or_else(|| "waiting".into(), state_of),
            trial.trial.seed.0.to_string(),
            training.map_or_else(|| "—".into(), |training| training.curve.len().to_string()),
            number(score(Metric::Accuracy)),
            number(score(Metric::AccuracyMinusRent)),
            training.map_or_else(|| "—".into(), |training| format!("{:.0}", training.seconds())),
        ]);
    }
    table
}

fn state_of(result: &TrialResult) -> String {
    match &result.reason {
        Some(reason) => format!(
            "{}: {}",
            end_name(result.end),
            reason.lines().next().unwrap_or_default()
        ),
        None => end_name(result.end).into(),
    }
}

/// Enough of an id to tell trials apart by eye.
fn short(id: &str) -> String {
    id[..id.len().min(8)].into()
}

fn retry(begun: &Begun, ids: &[String], context: &Context) -> Result<Outcome, String> {
    let (folder, plan) = open(begun)?;
    let results = Results::read(&folder).map_err(|error| error.to_string())?;
    let has_failed = |trial: &&Trial| results.end(&trial.id) == Some(TrialEnd::Failed);
    for id in ids {
        let found: Vec<&Trial> = plan
            .trials
            .iter()
            .filter(|trial| trial.id.starts_with(id.as_str()))
            .collect();
        match found[..] {
            [trial] if has_failed(&trial) => {}
            [_] => {
                return Err(format!(
                    "trial {id} has not failed; only what has failed is tried again"
                ));
            }
            [] => return Err(format!("the sweep has no trial {id}; `sweep status --all` lists them")),
            _ => return Err(format!("{} trials begin with {id}; write more of it", found.len())),
        }
    }
    let chosen = |trial: &&Trial| ids.is_empty() || ids.iter().any(|id| trial.id.starts_with(id.as_str()));
    let mut count = 0;
    for trial in plan.trials.iter().filter(has_failed).filter(chosen) {
        if let Err(error) = try_again(&folder, &trial.id, &results) {
            return Ok(failed(error, context));
        }
        count += 1;
    }
    Ok(show(format_args!(
        "to be tried again: {count}; play them with: simic-engine sweep work {}\n",
        folder.path().display()
    )))
}

/// Where a sweep stands, for programs to read.
#[derive(Serialize)]
struct Status<'a> {
    name: &'a str,
    folder: &'a Path,
    counts: BTreeMap<&'static str, usize>,
    trials: Vec<StatusRow>,
}

#[derive(Serialize)]
struct StatusRow {
    trial: String,
    settings: String,
    seed: u64,
    state: &'static str,
    /// Who plays it, how far it is, why it failed.
    details: String,
}

fn status(begun: &Begun, all: bool, context: &Context) -> Result<Outcome, String> {
    let (folder, plan) = open(begun)?;
    let read = || -> Result<Vec<StatusRow>, crate::health::FileError> {
        let state = SweepState::read(&folder, &plan)?;
        plan.trials.iter().map(|trial| row(&folder, &state, trial)).collect()
    };
    let rows = read().map_err(|error| error.to_string())?;
    let mut counts = BTreeMap::new();
    for row in &rows {
        *counts.entry(row.state).or_default() += 1;
    }
    let status = Status {
        name: &plan.name,
        folder: folder.path(),
        counts,
        trials: rows,
    };
    if context.global.json {
        return Ok(show_json(&status));
    }
    let counts: Vec<String> = status
        .counts
        .iter()
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let mut table = Table::new(&["trial", "settings", "state", ""], &["seed"]);
    let is_listed =
        |row: &&StatusRow| all || status.trials.len() <= LISTED || matches!(row.state, "playing" | "failed");
    for row in status.trials.iter().filter(is_listed) {
        table.push(vec![
            short(&row.trial),
            row.settings.clone(),
            row.state.into(),
            row.details.clone(),
            row.seed.to_string(),
        ]);
    }
    Ok(show(format_args!(
        "{}: {}\n\n{}",
        plan.name,
        counts.join(", "),
        table.render_within(width(), &[])
    )))
}

fn row(folder: &SweepFolder, state: &SweepState, trial: &Trial) -> Result<StatusRow, crate::health::FileError> {
    let (name, details) = match state.of(trial)? {
        TrialState::Ended(end) => {
            let result = read_result(folder, &trial.id, end)?;
            let attempts = match result.attempts {
                0 | 1 => String::new(),
                attempts => format!(" (attempt {attempts})"),
            };
            let reason = result.reason.as_deref().and_then(|reason| reason.lines().next());
            (end_name(end), format!("{}{attempts}", reason.unwrap_or_default()))
        }
        TrialState::Playing(worker) => ("playing", format!("{}{worker}", progress(folder, trial))),
        TrialState::Waiting(_) => ("waiting", String::new()),
        TrialState::AtRung(rung) => ("at_rung", format!("{}", rung + 1)),
    };
    Ok(StatusRow {
        trial: trial.id.clone(),
        settings: trial.label(),
        seed: trial.seed.0,
        state: name,
        details: details.trim().into(),
    })
}

/// `round 3/8, `; empty where the trial's run has not begun.
fn progress(folder: &SweepFolder, trial: &Trial) -> String {
    let status = RunStatus::read(&folder.trial(&trial.id)).ok();
    let round = status.and_then(|status| status.round);
    round.map_or_else(String::new, |round| format!("round {}/{}, ", round + 1, trial.rounds))
}

/// What is seen while a sweep is played: lines of what has happened, and on a terminal what is happening below them.
struct View<'a> {
    plan: &'a Plan,
    quiet: bool,
    bars: Option<Bars<'a>>,
    playing: Mutex<Vec<&'a Trial>>,
}

struct Bars<'a> {
    context: &'a Context<'a>,
    total: ProgressBar,
    trials: ProgressBar,
}

impl<'a> View<'a> {
    fn new(plan: &'a Plan, context: &'a Context<'a>) -> Self {
        let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let quiet = context.global.quiet;
        let bars = (is_terminal && !quiet).then(|| {
            let style = |template: &str| {
                // The templates are constants, so the default is never seen.
                BarStyle::with_template(template)
                    .unwrap_or_else(|_| BarStyle::default_bar())
                    .progress_chars("━━─")
            };
            let total = context.terminal.add(ProgressBar::new(plan.trials.len() as u64));
            total.set_style(style("trials {bar:32} {pos}/{len} {elapsed_precise}"));
            let trials = context.terminal.add(ProgressBar::new(0));
            trials.set_style(style("{msg}"));
            Bars { context, total, trials }
        });
        Self {
            plan,
            quiet,
            bars,
            playing: Mutex::default(),
        }
    }

    fn tell(&self, told: Told) {
        let find = |trial: &Trial| self.plan.trials.iter().find(|known| known.id == trial.id);
        let mut playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |trial: &Trial| format!("{} {} seed {}", short(&trial.id), trial.label(), trial.seed.0);
        let line = match told {
            Told::Begun(trial) => {
                playing.extend(find(trial));
                self.bars.is_none().then(|| format!("{}: begun", name(trial)))
            }
            Told::Ended(trial, result) => {
                playing.retain(|known| known.id != trial.id);
                if let Some(bars) = &self.bars {
                    bars.total.inc(1);
                }
                let score = result
                    .training
                    .as_ref()
                    .and_then(|training| training.score(Metric::Accuracy));
                let score = score.map_or_else(String::new, |score| format!(", accuracy {score:.2} %"));
                Some(format!(
                    "{}: {}{score}, {:.0} s",
                    name(trial),
                    state_of(result),
                    result.wall_s
                ))
            }
            Told::Scored(trial, segment, score) => {
                playing.retain(|known| known.id != trial.id);
                Some(format!("{}: {score:.2} % after {} rounds", name(trial), segment.until))
            }
            Told::Left(trial, TrialState::Playing(worker)) => {
                Some(format!("{}: left to {worker}, which plays it", name(trial)))
            }
            Told::Left(trial, _) => Some(format!("{}: it waits for others at a rung", name(trial))),
            Told::Again(trial, reason) => Some(format!("{}: tried again, as it failed: {reason}", name(trial))),
        };
        let Some(line) = line.filter(|_| !self.quiet) else {
            return;
        };
        match &self.bars {
            Some(bars) => bars.context.terminal.say(&line),
            None => tell(line),
        }
    }

    /// Draws what is being played, until nothing is.
    fn follow(&self, folder: &SweepFolder, is_over: &AtomicBool) {
        let Some(bars) = &self.bars else { return };
        if let Ok(results) = Results::read(folder) {
            let ended = self
                .plan
                .trials
                .iter()
                .filter(|trial| results.end(&trial.id).is_some())
                .count();
            bars.total.set_position(ended as u64);
        }
        while !is_over.load(Ordering::Relaxed) {
            let playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let lines: Vec<String> = playing
                .iter()
                .map(|trial| format!("{} {} {}", short(&trial.id), progress(folder, trial), trial.label()))
                .collect();
            bars.trials.set_message(lines.join("\n"));
            bars.total.tick();
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn clear(&self) {
        if let Some(bars) = &self.bars {
            bars.total.finish_and_clear();
            bars.trials.finish_and_clear();
        }
    }
}
