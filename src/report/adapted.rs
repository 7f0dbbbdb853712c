//! The results of an adaptation, in words and one table.

use std::path::Path;

use super::grown::capitalised;
use super::table::Table;
use super::words::{number, wrapped};
use crate::adapt::{Adapted, RECOGNISED, Row};
use crate::grow::Bounded;

/// Columns that a narrow terminal omits, first to last.
const DROPPED: [&str; 4] = ["seconds", "MMAC", "95 %", "rate"];

/// The rows, the row that was written, and its place.
pub fn adaptation_text(adapted: &Adapted, place: &Path, width: usize) -> String {
    let table = adaptation_table(&adapted.rows).render_within(width, &DROPPED);
    let reasons = [&adapted.why].into_iter().chain(&adapted.better);
    let why: Vec<String> = reasons.map(|reason| wrapped(&capitalised(reason), width)).collect();
    let why = why.join("\n");
    let recognised = adapted.recognised.map_or_else(String::new, |[new, old]| {
        format!("statistics alone recognise {new:.0} % of new and {old:.0} % of old batches of {RECOGNISED} images\n")
    });
    format!(
        "{table}\n{why}\n{recognised}{} contains the given network, unchanged, and its domain `{}`\n",
        place.display(),
        adapted.domain
    )
}

/// The quality and the price of rows.
pub(super) fn adaptation_table(rows: &[Row]) -> Table {
    let has_old = rows.iter().any(|row| row.old.is_some());
    let has_test = rows.iter().any(|row| row.test.is_some());
    let mut numbers = vec!["added", "cv %"];
    numbers.extend(has_test.then_some("test %"));
    numbers.extend(["95 %", "written ahead"]);
    numbers.extend(has_old.then_some("old %"));
    numbers.extend(["rate", "MMAC", "seconds"]);
    let cells = rows.iter().map(|row| {
        let shown = row.test.unwrap_or(row.cross_validated);
        let ahead = row
            .written_ahead
            .map_or_else(String::new, |Bounded { mean, low, high }| {
                format!("{mean:+.1} ({low:+.1} to {high:+.1})")
            });
        let mut cells = vec![
            row.name.clone(),
            format!("{:.2}x", row.added_share),
            format!("{:.1}", row.cross_validated.mean),
        ];
        cells.extend(has_test.then(|| number(row.test.map(|test| test.mean), 1)));
        cells.extend([format!("{:.1} to {:.1}", shown.low, shown.high), ahead]);
        cells.extend(has_old.then(|| number(row.old.map(|old| old.mean), 1)));
        cells.extend([
            format!("{}{}", row.rate, if row.head_first { " head first" } else { "" }),
            format!("{:.3}", row.macs as f64 / 1e6),
            format!("{:.1}", row.seconds),
        ]);
        cells
    });
    Table::of(&["what learns"], &numbers, cells)
}
