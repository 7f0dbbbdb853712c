//! `runs`: what was run, how far it came and what it reached.

use super::rejection::Rejection;
use super::{Context, Outcome, RunsOptions};
use crate::record::{list_runs, runs_root};
use crate::report::runs_table;
use crate::telemetry::Timestamp;

/// Lists the runs of a folder, the newest first.
pub fn runs(options: &RunsOptions, context: &Context) -> Result<Outcome, Rejection> {
    let root = runs_root(options.out.as_deref());
    let mut runs = match list_runs(&root) {
        Ok(runs) => runs,
        // Nothing was run yet.
        Err(_) if options.out.is_none() && !root.exists() => Vec::new(),
        Err(error) => return Err(format!("cannot list the runs in {error}").into()),
    };
    runs.retain(|run| options.tags.iter().all(|tag| run.tags.contains(tag)));
    let printer = context.printer;
    if context.global.json {
        return Ok(printer.show_json(&runs));
    }
    if runs.is_empty() {
        let tagged = match &options.tags[..] {
            [] => String::new(),
            tags => format!(" tagged {}", tags.join(" and ")),
        };
        printer.note(format_args!("there is no run{tagged} in {}", root.display()));
        return Ok(Outcome::Done);
    }
    Ok(printer.show(runs_table(&runs, printer.width(), Timestamp::now())))
}
