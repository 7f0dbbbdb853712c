//! The table of a `grow`: what was grown, beside what else the compute could have been spent on.

use std::path::Path;

use super::table::Table;
use super::words::{number, wrapped};
use crate::grow::{Bounded, Growth, Row, Way};

/// Columns that go first where there is no room for them.
const DROPPED: [&str; 6] = ["tried", "rate", "steps", "val %", "GMAC spent", "seconds"];

/// The rows, the choice in a sentence, and where the result is; lines of at most `width` characters.
pub fn growth_text(growth: &Growth, place: &Path, width: usize) -> String {
    let rows = growth_table(&growth.rows).render_within(width, &DROPPED);
    let grown = growth.rows.iter().find(|row| row.way == Way::Grown);
    let seeds = grown.map_or_else(String::new, |row| format!("grown: {}\n", seeds(row)));
    let why = wrapped(&capitalised(&growth.choice.why), width);
    format!("{rows}{seeds}\n{why}\nwritten to {}\n", place.display())
}

/// Sizes, accuracies and differences of rows.
pub(super) fn growth_table(rows: &[Row]) -> Table {
    let has_old = rows.iter().any(|row| row.old.is_some());
    let mut numbers = vec![
        "parameters",
        "MMAC",
        "GMAC spent",
        "seconds",
        "steps",
        "tried",
        "rate",
        "val %",
        "test %",
        "95 %",
        "grown ahead",
    ];
    numbers.extend(has_old.then_some("old %"));
    Table::of(&["network"], &numbers, rows.iter().map(|row| cells(row, has_old)))
}

fn cells(row: &Row, has_old: bool) -> Vec<String> {
    let ahead = row.grown_ahead.map_or_else(String::new, |Bounded { mean, low, high }| {
        format!("{mean:+.2} ({low:+.2} to {high:+.2})")
    });
    let mut cells = vec![
        row.name.clone(),
        row.parameters.to_string(),
        format!("{:.3}", row.macs as f64 / 1e6),
        format!("{:.1}", row.gmacs),
        format!("{:.1}", row.seconds),
        row.steps.to_string(),
        row.tried.to_string(),
        format!("{}", row.rate),
        format!("{:.2}", row.validation),
        format!("{:.2}", row.test.mean),
        format!("{:.1} to {:.1}", row.test.low, row.test.high),
        ahead,
    ];
    cells.extend(has_old.then(|| number(row.old.map(|old| old.mean), 2)));
    cells
}

fn seeds(row: &Row) -> String {
    let seeds = row.seeds.iter().map(|(slot, blueprint)| format!("{slot} {blueprint}"));
    seeds.collect::<Vec<_>>().join(", ")
}

pub(super) fn capitalised(sentence: &str) -> String {
    let mut characters = sentence.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), characters.as_str())
}
