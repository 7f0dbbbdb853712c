//! The runs of a folder in a table.

use super::table::Table;
use super::words::{ABSENT, cell, number};
use crate::record::RunEntry;
use crate::run::size;
use crate::telemetry::Timestamp;

/// Columns that are omitted first where there is no room: the name of a run or a short question gives the same facts.
const DROPPABLE: [&str; 3] = ["scenario", "size", "tags"];

/// Progress and result of each run, in lines of at most `width` characters; ages as of `now`.
pub fn runs_table(runs: &[RunEntry], width: usize, now: Timestamp) -> String {
    let row = |run: &RunEntry| {
        vec![
            run.run_id.clone(),
            run.state.name().into(),
            run.scenario.clone().unwrap_or_default(),
            run.tags.join(" "),
            rounds(run),
            number(run.best_accuracy, 1),
            cell(run.began(), |began| age(now.milliseconds() - began.milliseconds())),
            size(run.size_bytes.into()),
        ]
    };
    let texts = ["run", "state", "scenario", "tags"];
    let numbers = ["rounds", "best %", "age", "size"];
    let table = Table::of(&texts, &numbers, runs.iter().map(row));
    let is_tagged = runs.iter().any(|run| !run.tags.is_empty());
    let mut text = if is_tagged { table } else { table.without("tags") }.render_within(width, &DROPPABLE);
    let head = text.lines().next().unwrap_or_default().to_owned();
    let is_missing = |column: &&str| !head.contains(*column) && (is_tagged || *column != "tags");
    let missing: Vec<&str> = DROPPABLE.into_iter().filter(is_missing).collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        text += &format!("  no room for: {missing} (a wider terminal or --json shows all)\n");
    }
    let problem = |run: &RunEntry| Some(format!("  {}: {}\n", run.run_id, run.problem.as_ref()?));
    let problems: String = runs.iter().filter_map(problem).collect();
    if !problems.is_empty() {
        text += &format!("\n{problems}");
    }
    text
}

/// `12/80`
fn rounds(run: &RunEntry) -> String {
    match (run.rounds, run.n_rounds) {
        (Some(played), Some(planned)) => format!("{played}/{planned}"),
        (Some(played), None) => played.to_string(),
        (None, _) => ABSENT.into(),
    }
}

/// `42s`, `3m`, `5h`, `12d`
fn age(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests;
