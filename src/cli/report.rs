//! `report`: a run or a sweep as one HTML file; a run also again and again while it is played, or served to browsers on this
//! machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::named::{Named, held_run};
use super::rejection::Rejection;
use super::{Context, Outcome, ReportOptions};
use crate::compare::Metric;
use crate::health::AtPath;
use crate::record::runs_root;
use crate::report::{ListedTraining, RunSource, Served, comparison_page, run_page, serve};
use crate::storage;
use crate::sweep::{Collected, CollectedTrial, Plan, SweepFolder};

/// The interval at which the report that follows a record looks at it.
const LOOK: Duration = Duration::from_secs(2);

/// Writes the report, or serves it.
pub fn report(options: &ReportOptions, context: &Context) -> Result<Outcome, Rejection> {
    let place = match &options.run {
        None => None,
        Some(run) => match Named::find(run, options.out.as_deref())? {
            Named::Sweep(folder, plan) => return sweep_report(&folder, &plan, options, context),
            Named::Run(place) => Some(held_run(place)?),
        },
    };
    if let Some(address) = options.http {
        let out = options.out.as_deref();
        let served = place.map_or_else(|| Served::All(runs_root(out)), Served::Run);
        let (printer, stop) = (context.printer, context.heeded_stop()?);
        let announce = |address| printer.note(format_args!("http://{address}/ shows it; Ctrl-C ends it"));
        serve(address, served, announce, || stop.is_requested())?;
        return Ok(Outcome::Done);
    }
    let Some(place) = place else {
        return Err("name a run, or give --http for the list of all".into());
    };
    let output = options.output.clone().unwrap_or_else(|| PathBuf::from("report.html"));
    let mut source = RunSource::new(&place);
    source.poll();
    write(&output, &run_page(&source, false))?;
    if options.follow {
        follow(&mut source, &output, context)?;
    }
    if let Some(problem) = &source.problem {
        let message = format_args!("{problem}; the report covers the events before it");
        context.printer.error(message);
    }
    Ok(written(&output, context))
}

fn written(output: &Path, context: &Context) -> Outcome {
    let place = serde_json::json!({ "report": output });
    let text = || format!("written to {}\n", output.display());
    context.printer.show_either(&place, text)
}

/// A sweep's points against each other, by its judge if it has one.
fn sweep_report(
    folder: &SweepFolder,
    plan: &Plan,
    options: &ReportOptions,
    context: &Context,
) -> Result<Outcome, Rejection> {
    if options.follow || options.http.is_some() {
        return Err("--follow and --http are for runs: name a trial, or write the sweep's report again".into());
    }
    let output = options.output.clone().unwrap_or_else(|| PathBuf::from("report.html"));
    let collected = Collected::read(folder, plan)?.judged(plan);
    let trainings = collected.trainings();
    let usual = || collected.compared(Metric::AccuracyMinusRent, None, false);
    let comparison = collected.judgement.clone().unwrap_or_else(usual);
    let listed = collected.trials.iter().map(|CollectedTrial { trial, result, .. }| {
        let state = result.as_ref().map_or("not ended", |result| result.end.name());
        ListedTraining {
            name: format!("{}, {}", trial.id, trial.label()),
            state: state.into(),
            folder: folder.trial(&trial.id),
            record: result.as_ref().and_then(|result| result.training.as_ref()),
        }
    });
    let page = comparison_page(&collected.name, &comparison, &trainings, &listed.collect::<Vec<_>>());
    write(&output, &page)?;
    Ok(written(&output, context))
}

fn follow(source: &mut RunSource, output: &Path, context: &Context) -> Result<(), Rejection> {
    let stop = context.heeded_stop()?;
    context.printer.note(format_args!(
        "{} is rewritten while the run plays; Ctrl-C stops that",
        output.display()
    ));
    let mut written = source.version;
    let mut is_played = true;
    while is_played && !stop.is_requested() {
        std::thread::sleep(LOOK);
        // Asked first: once it is gone, its last write is there.
        is_played = source.is_played();
        source.poll();
        if source.version != written {
            written = source.version;
            write(output, &run_page(source, false))?;
        }
    }
    Ok(())
}

/// Puts a page in its place.
pub(super) fn write(path: &Path, page: &str) -> Result<(), Rejection> {
    Ok(storage::replace_synced(path, page.as_bytes()).at(path)?)
}
