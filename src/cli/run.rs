//! `run` and `learn`: play a scenario, or say what would be played; `resume`: continues a run from one of its checkpoints, in its
//! own directory.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use super::named::{Named, way_on};
use super::options::PlayOptions;
use super::prepare::{explain_if_moved, is_sweep, prepare};
use super::rejection::Rejection;
use super::watch::show_while_playing;
use super::{Context, Outcome, ResumeOptions, RunOptions, sweep};
use crate::checkpoint::{Checkpoints, PastRun, ResumePoint};
use crate::engine::{Engine, MemoryEstimate, Prepared, RunRecord, RunReport};
use crate::env::Experiment;
use crate::files::counted;
use crate::record::ScenarioFile;
use crate::report::{merged, run_results, summary};
use crate::run::{RoundLimit, StopRequest, StopSignal};
use crate::scenario::{Catalog, Loaded, Override, resolved_ron};
use crate::telemetry::RecordGap;
use crate::training::with_environment;

/// Trains a policy on recorded trajectories.
pub fn learn(options: &RunOptions, context: &Context) -> Result<Outcome, Rejection> {
    let prepared = prepare(options, context)?;
    if !prepared.loaded.scenario.learner.is_offline() {
        let message = format!(
            "{}: learner.recordings names no sets; to learn from recordings, write learner: (recordings: (sets: \
             [\"NAME.traj\"]), algorithm: clone(())); to learn from rollouts, use `simic-engine run`",
            prepared.label()
        );
        return Err(message.into());
    }
    begin(options, prepared, context)
}

/// Plays a scenario, or prints the plan.
pub fn run(options: &RunOptions, context: &Context) -> Result<Outcome, Rejection> {
    if options.scenario.as_deref().is_some_and(is_sweep) {
        return run_sweep(options, context);
    }
    begin(options, prepare(options, context)?, context)
}

fn begin(options: &RunOptions, prepared: Prepared, context: &Context) -> Result<Outcome, Rejection> {
    let Loaded { warnings, origins, .. } = &prepared.loaded;
    if !context.global.quiet && !warnings.problems.is_empty() {
        context.printer.report(warnings);
    }
    if options.dry_run {
        return dry_run(&prepared, context);
    }
    let mut recording = context.recording(options.out.as_deref());
    recording.tags.clone_from(&options.tags);
    recording.id.clone_from(&options.id);
    let mut engine = context.engine().recording(recording).build(&prepared)?;
    limit_rounds(&mut engine, options.until);
    show_while_playing(&mut engine, options.progress, context);
    Ok(play(engine, origins, context))
}

/// A sweep file is played as by `sweep`, with the values of the flags laid over all of its trials.
fn run_sweep(options: &RunOptions, context: &Context) -> Result<Outcome, Rejection> {
    let alone = [
        ("--until", options.until.is_some()),
        ("--id", options.id.is_some()),
        ("--relative-to", options.relative_to.is_some()),
        ("--tag", !options.tags.is_empty()),
    ];
    if let Some((flag, _)) = alone.iter().find(|(_, is_given)| *is_given) {
        return Err(format!("{flag} is for a single run, and this is a sweep file; leave it out").into());
    }
    let play = PlayOptions {
        file: options.scenario.clone(),
        dry_run: options.dry_run,
        out: options.out.clone(),
        ..PlayOptions::default()
    };
    sweep::begin(&play, &options.overrides()?, context)
}

/// Finds the run, checks whether it can be resumed, and plays the rest of it.
pub fn resume(options: &ResumeOptions, context: &Context) -> Result<Outcome, Rejection> {
    let path = match Named::find(&options.run, options.out.as_deref())? {
        Named::Sweep(folder, _) => {
            let sweep = folder.path().display();
            return Err(format!("{sweep} is a sweep: simic-engine sweep work {sweep} plays what is left of it").into());
        }
        Named::Run(path) => path,
    };
    let Some((prepared, point)) = left_of(options, &path, &context.names.catalog)? else {
        return Ok(context.printer.show(format_args!(
            "{} has played all of its rounds: nothing is left to do (--extend N gives it more)\n",
            path.display()
        )));
    };
    let mut engine = context
        .engine()
        .recording(context.recording(None))
        .resumed(point)
        .build(&prepared)?;
    limit_rounds(&mut engine, options.until);
    show_while_playing(&mut engine, options.progress, context);
    Ok(play(engine, &Default::default(), context))
}

/// The remaining part and the point where it begins; `None` if nothing is left.
fn left_of(
    options: &ResumeOptions,
    path: &Path,
    catalog: &Catalog,
) -> Result<Option<(Prepared, ResumePoint)>, Rejection> {
    let past = PastRun::open(path, options.from)?;
    let load = |overrides: &[Override]| -> Result<Prepared, Rejection> {
        let label = path.join("resolved.ron").display().to_string();
        let file = ScenarioFile {
            text: past.resolved.clone(),
            ..past.file.clone()
        };
        let mut prepared = Prepared::past(&label, file, overrides, &catalog.without_images())?;
        if !overrides.iter().any(|change| change.path == "run.rounds") {
            // The run may have been given more rounds when it was resumed before.
            prepared.loaded.scenario.run.rounds = past.point.progress.rounds;
        }
        prepared.file = past.file.clone();
        Ok(prepared)
    };
    let earlier = past.earlier_changes()?;
    let before = load(&earlier)?.loaded.scenario;
    let asked = options.overrides(before.run.rounds)?;
    let stands = |change: &&Override| !asked.iter().any(|asked| asked.overlaps(change));
    let changes: Vec<Override> = earlier.iter().filter(stands).chain(&asked).cloned().collect();
    let changes = with_environment(&changes)?;
    let now = load(&changes)?;
    let point = past.resume(&before, &now.loaded, &changes, &options.allowed)?;
    let run = &now.loaded.scenario.run;
    if past.is_finished(run.rounds)? {
        past.tidy();
        return Ok(None);
    }
    Ok(Some((now, point)))
}

/// Lets a run stop after `until` rounds.
fn limit_rounds(engine: &mut Engine, until: Option<u32>) {
    if let Some(rounds) = until {
        engine.world_mut().insert_resource(RoundLimit(rounds));
    }
}

/// Plays to the end. The summary goes to stdout. `origins` gives the source of each value other than a default.
fn play(mut engine: Engine, origins: &BTreeMap<String, String>, context: &Context) -> Outcome {
    let stop = engine.world().get_resource::<StopSignal>().cloned();
    if let Err(message) = context.heed_signals(stop.unwrap_or_default()) {
        context.printer.refuse(message);
        return Outcome::Rejected;
    }
    let report = engine.play();
    let shown = print(&report, origins, context);
    if report.failure.is_some() && report.record.is_none() {
        let folder = engine.world().resource::<Experiment>().folder.as_deref();
        explain_if_moved(folder, context.printer);
    }
    Outcome::of_run(&report).unless_done(shown)
}

fn print(report: &RunReport, origins: &BTreeMap<String, String>, context: &Context) -> Outcome {
    let printer = context.printer;
    let shown = match &report.record {
        Some(record) if context.global.json => printer.show_json(&merged(
            json!({
                "run_id": record.run_id,
                "directory": record.directory.display().to_string(),
                "results": record.results.as_ref().map(run_results),
                // What is missing from the record.
                "gaps": report.gaps,
                // Source of each value other than a default, by path.
                "origins": origins,
            }),
            &record.finished(),
        )),
        Some(RunRecord {
            results: Some(results),
            directory,
            ..
        }) => printer.show(summary(results, directory, printer.width())),
        _ => Outcome::Done,
    };
    match &report.failure {
        Some(failure) if report.record.is_none() => printer.refuse(failure),
        Some(failure) => printer.error(failure),
        None => {}
    }
    for gap in &report.gaps {
        printer.error(format_args!("the record is incomplete: {gap}"));
    }
    if let (Some(record), false) = (&report.record, report.gaps.is_empty()) {
        printer.note(remedy(&report.gaps, record));
    }
    match (report.stopped_by, &report.record) {
        (Some(request), Some(record)) => {
            let why = match request {
                StopRequest::Anomaly => "stopped because of an anomaly (run.on_anomaly)",
                _ => "stopped as asked",
            };
            printer.note(format_args!("{why}; {}", way_on(&record.directory)));
        }
        (Some(_), None) if report.failure.is_none() => printer.note("stopped as asked, before anything was recorded"),
        _ => {}
    }
    shown
}

/// Advice on an incomplete record.
fn remedy(gaps: &[RecordGap], record: &RunRecord) -> String {
    let directory = record.directory.display();
    let lost = gaps.iter().filter(|gap| gap.lost_events > 0);
    let Some(first) = lost.map(|gap| gap.round.unwrap_or_default()).min() else {
        return format!("remove the cause; {}", way_on(&record.directory));
    };
    match Checkpoints::of(&record.directory).newest_until(first) {
        Some(rounds) => format!(
            "remove the cause, then play and record these rounds again with: simic-engine resume {directory} --from \
             {rounds}"
        ),
        None => "the training is sound, but the lost events cannot be recovered: no checkpoint is older".into(),
    }
}

/// Prints the plan: the amount of work and of memory, the algorithms of convolutions, then the scenario with everything resolved.
fn dry_run(prepared: &Prepared, context: &Context) -> Result<Outcome, Rejection> {
    let (loaded, printer) = (&prepared.loaded, context.printer);
    let memory = MemoryEstimate::of(loaded, &context.names.blueprints, context.threads());
    let samples = samples(loaded);
    if context.global.json {
        return Ok(printer.show_json(&json!({
            "scenario": loaded.scenario,
            "task": loaded.task,
            "samples_per_round": samples.map(|[.., all]| u64::try_from(all).unwrap_or(u64::MAX)),
            // What the run takes at most, device by device.
            "memory": memory,
            "origins": loaded.origins,
        })));
    }
    let (run, task) = (&loaded.scenario.run, &loaded.task);
    let work = samples.map_or_else(String::new, |[train, val, all]| {
        format!(", {all} samples a round ({train} to train and {val} to validate, per env and step)")
    });
    let text = resolved_ron(&loaded.scenario);
    let text = text.map_err(|error| Rejection::failed(format_args!("the scenario cannot be written: {error}")))?;
    let memory: String = memory.iter().map(|memory| format!("// {memory}\n")).collect();
    let host = context.names.hosts.of(&task.host, prepared.file.folder.as_deref());
    let host = host.map_err(|error| Rejection::failed(format_args!("{error}")))?;
    let convolutions = match host.plan(task.classes).convolutions() {
        none if none.is_empty() => none,
        some => format!("// convolutions on a CPU: {some}\n"),
    };
    let (rounds, envs) = (counted(run.rounds, "round"), counted(run.n_envs, "env"));
    Ok(printer.show(format_args!(
        "// {}: {rounds} of {envs} x {} steps{work}\n{memory}{convolutions}{text}\n",
        task.name, task.max_steps,
    )))
}

/// Samples of an env's step, to train and to validate, and of a whole round; `None` where the data's size is not known beforehand.
fn samples(loaded: &Loaded) -> Option<[u128; 3]> {
    let (run, task) = (&loaded.scenario.run, &loaded.task);
    let sizes = task.data.part_sizes(&task.split)?;
    let batches = task.train_batches(sizes.train, run.n_envs) as u128;
    let (train, val) = (batches * task.batch_size as u128, sizes.val as u128);
    let env_steps = run.n_envs as u128 * u128::from(task.max_steps);
    Some([train, val, env_steps.saturating_mul(train.saturating_add(val))])
}
