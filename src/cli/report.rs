//! `report`: a run as one HTML file, once or again and again while it is played, or served to a browser on this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::named::{Named, held_run};
use super::output::{print_error, print_note, show_either};
use super::rejection::Rejection;
use super::{Context, Outcome, ReportOptions, heeded_stop};
use crate::health::AtPath;
use crate::record::runs_root;
use crate::report::{RunSource, Served, serve};
use crate::storage;

/// How often a record is looked at while a report follows it.
const LOOK: Duration = Duration::from_secs(2);

/// Writes the report, or serves it.
pub fn report(options: &ReportOptions, context: &Context) -> Result<Outcome, Rejection> {
    let place = match &options.run {
        None => None,
        Some(run) => match Named::find(run, options.out.as_deref())? {
            Named::Sweep(..) => return Err(Rejection::Usage("a report of a sweep is not there yet".into())),
            Named::Run(place) => Some(held_run(place)?),
        },
    };
    if let Some(address) = options.http {
        let out = options.out.as_deref();
        let served = place.map_or_else(|| Served::All(runs_root(out)), Served::Run);
        let stop = heeded_stop()?;
        let announce = |address| print_note(format_args!("http://{address}/ shows it; Ctrl-C ends it"));
        serve(address, served, announce, || stop.is_requested())?;
        return Ok(Outcome::Done);
    }
    let Some(place) = place else {
        return Err(Rejection::Usage(
            "name a run, or give --http for the list of all".into(),
        ));
    };
    let output = options.output.clone().unwrap_or_else(|| PathBuf::from("report.html"));
    let mut source = RunSource::new(&place);
    source.poll();
    write(&output, &source.page(false))?;
    if options.follow {
        follow(&mut source, &output)?;
    }
    if let Some(problem) = source.problem() {
        print_error(
            context.global,
            format_args!("{problem}; the report is of the events before"),
        );
    }
    let written = serde_json::json!({ "report": output });
    Ok(show_either(context.global, &written, || {
        format!("written to {}\n", output.display())
    }))
}

fn follow(source: &mut RunSource, output: &Path) -> Result<(), Rejection> {
    let stop = heeded_stop()?;
    print_note(format_args!(
        "{} is written anew as the run goes on; Ctrl-C ends it",
        output.display()
    ));
    let mut written = source.version();
    let mut goes_on = true;
    while goes_on && !stop.is_requested() {
        std::thread::sleep(LOOK);
        // Asked first: what it writes last is there once it is gone.
        goes_on = source.goes_on();
        source.poll();
        if source.version() != written {
            written = source.version();
            write(output, &source.page(false))?;
        }
    }
    Ok(())
}

fn write(path: &Path, page: &str) -> Result<(), Rejection> {
    Ok(storage::replace_synced(path, page.as_bytes()).at(path)?)
}
