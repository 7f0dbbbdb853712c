//! `sweep status`: the progress of a sweep and of each of its trials.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::json;

use super::open;
use crate::cli::options::Begun;
use crate::cli::rejection::Rejection;
use crate::cli::{Context, Outcome};
use crate::health::FileError;
use crate::record::RunStatus;
use crate::report::{Table, short_id};
use crate::sweep::{Leases, SweepFolder, SweepState, Trial, TrialState, read_sound};

/// Trials that are listed one by one; of more only those are that play or have failed.
const LISTED: usize = 40;

/// The state of a trial, for programs.
#[derive(Serialize)]
struct StatusRow {
    trial: String,
    settings: String,
    seed: u64,
    state: &'static str,
    /// Its worker, its progress, or the reason of its failure.
    details: String,
}

/// Shows it; all trials of a large sweep with `all`.
pub(super) fn status(begun: &Begun, all: bool, context: &Context) -> Result<Outcome, Rejection> {
    let (folder, plan) = open(begun)?;
    let state = SweepState::read(&folder, &plan, Leases::read(&folder, plan.lease(), SystemTime::now())?)?;
    let rows = plan.trials.iter().map(|trial| row(&folder, &state, trial));
    let rows: Vec<StatusRow> = rows.collect::<Result<_, _>>()?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &rows {
        *counts.entry(row.state).or_default() += 1;
    }
    let printer = context.printer;
    if context.global.json {
        let (name, folder) = (&plan.name, folder.path().display().to_string());
        let status = json!({ "name": name, "folder": folder, "counts": counts, "trials": rows });
        return Ok(printer.show_json(&status));
    }
    let counts: Vec<String> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let is_listed = |row: &&StatusRow| all || rows.len() <= LISTED || matches!(row.state, "playing" | "failed");
    let cells = |row: &StatusRow| {
        let (settings, details) = (row.settings.clone(), row.details.clone());
        vec![
            short_id(&row.trial),
            settings,
            row.state.into(),
            details,
            row.seed.to_string(),
        ]
    };
    let rows = rows.iter().filter(is_listed).map(cells);
    let table = Table::of(&["trial", "settings", "state", ""], &["seed"], rows);
    Ok(printer.show(format_args!(
        "{}: {}\n\n{}",
        plan.name,
        counts.join(", "),
        table.render_within(printer.width(), &[])
    )))
}

fn row(folder: &SweepFolder, state: &SweepState, trial: &Trial) -> Result<StatusRow, FileError> {
    let (name, details) = match state.of(trial)? {
        TrialState::Ended(end) => {
            let result = read_sound(folder, &trial.id, end)?;
            let attempts = match result.as_ref().map_or(0, |result| result.attempts) {
                0 | 1 => String::new(),
                attempts => format!(" (attempt {attempts})"),
            };
            let reason = result
                .as_ref()
                .and_then(|result| result.reason.as_deref()?.lines().next());
            let name = if result.is_some() { end.name() } else { "damaged" };
            (name, format!("{}{attempts}", reason.unwrap_or_default()))
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
pub(super) fn progress(folder: &SweepFolder, trial: &Trial) -> String {
    let status = RunStatus::read(&folder.trial(&trial.id)).ok();
    let round = status.and_then(|status| status.round);
    round.map_or_else(String::new, |round| format!("round {}/{}, ", round + 1, trial.rounds))
}
