//! The tables of a `grow`: the grown network next to other uses of the compute, and the cost of each row.

use std::path::Path;

use super::table::Table;
use super::words::{number, wrapped};
use crate::grow::{Bounded, Growth, Row, Way};

/// Columns that are omitted first where there is no room for them.
const DROPPED: [&str; 5] = ["val %", "rate", "seconds", "GMAC in all", "MMAC"];

/// The rows, the choice in a sentence, and the place of the result, in lines of at most `width` characters.
pub fn growth_text(growth: &Growth, place: &Path, width: usize) -> String {
    let tables = growth_tables(&growth.rows).map(|table| table.render_within(width, &DROPPED));
    let grown = growth.rows.iter().find(|row| row.way == Way::Grown);
    let seeds = grown.map_or_else(String::new, |row| format!("grown: {}\n", seeds(row)));
    let why = wrapped(&capitalised(&growth.choice.why), width);
    format!(
        "{}\n{seeds}\n{why}\nwritten to {}\n",
        tables.join("\n"),
        place.display()
    )
}

/// Scores and costs of the rows.
pub(super) fn growth_tables(rows: &[Row]) -> [Table; 2] {
    let has_old = rows.iter().any(|row| row.old.is_some());
    let mut numbers = vec!["parameters", "val %", "test %", "95 %", "grown ahead"];
    numbers.extend(has_old.then_some("old %"));
    let took = ["MMAC", "steps", "tried", "rate", "GMAC each", "GMAC in all", "seconds"];
    [
        Table::of(&["network"], &numbers, rows.iter().map(|row| accuracies(row, has_old))),
        Table::of(&["network", "compute"], &took, rows.iter().map(effort)),
    ]
}

fn accuracies(row: &Row, has_old: bool) -> Vec<String> {
    let ahead = row.grown_ahead.map_or_else(String::new, |Bounded { mean, low, high }| {
        format!("{mean:+.2} ({low:+.2} to {high:+.2})")
    });
    let mut cells = vec![
        row.name.clone(),
        row.parameters.to_string(),
        format!("{:.2}", row.validation),
        format!("{:.2}", row.test.mean),
        format!("{:.1} to {:.1}", row.test.low, row.test.high),
        ahead,
    ];
    cells.extend(has_old.then(|| number(row.old.map(|old| old.mean), 2)));
    cells
}

fn effort(row: &Row) -> Vec<String> {
    vec![
        row.name.clone(),
        row.note.clone().unwrap_or_else(|| "equal".into()),
        format!("{:.3}", row.macs as f64 / 1e6),
        row.steps.to_string(),
        row.tried.to_string(),
        row.rate.to_string(),
        format!("{:.1}", row.gmacs),
        format!("{:.1}", row.gmacs_in_all),
        format!("{:.1}", row.seconds),
    ]
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
