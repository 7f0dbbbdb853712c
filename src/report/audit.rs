//! Report on how much scripted exploiters earn under a reward.

use super::table::Table;
use super::words::wrapped;
use crate::reward::{Audit, AuditRow};

/// The column that is omitted where there is no room for it.
const SUMMARY: &str = "what it does";

const EXPLANATION: &str = "Nothing is trained: scripts play the scenario's lifecycle with seeds of known worth on a host \
                           that reaches 30 % without them. No exploiter may earn more than waiting or as much as honest \
                           growth; commit_at_once may earn what its committed accuracy is worth.";

/// Earnings of each script, in lines of at most `width` characters.
pub fn audit_text(audit: &Audit, width: usize) -> String {
    let cells = |row: &AuditRow| {
        let allowed = row.allowed.map(|allowed| format!("{allowed:+.3}"));
        vec![
            row.strategy.into(),
            if row.passes { "ok" } else { "FAILS" }.into(),
            row.summary.into(),
            format!("{:.1}", row.committed_accuracy),
            format!("{:+.3}", row.discounted),
            allowed.unwrap_or_else(|| "-".into()),
        ]
    };
    let numbers = ["committed %", "return", "allowed"];
    let rows = audit.rows.iter().map(cells);
    let table = Table::of(&["strategy", "verdict", SUMMARY], &numbers, rows);
    format!(
        "reward {} over {} steps, discounted by {} a step\n\n{}\n{}\n",
        audit.mode,
        audit.max_steps,
        audit.gamma,
        table.render_within(width, &[SUMMARY]),
        wrapped(EXPLANATION, width)
    )
}

/// The reason why a reward can be exploited.
pub fn exploited(row: &AuditRow, audit: &Audit) -> String {
    let honest = audit.rows.iter().find(|row| row.strategy == "honest_growth");
    let honest = honest.map_or(f64::NAN, |row| row.discounted);
    let earns = format!("{} ({}) earns {:+.3}", row.strategy, row.summary, row.discounted);
    match row.allowed {
        None => format!("{earns}, no more than waiting"),
        Some(allowed) if row.discounted > allowed => format!("{earns}, but only {allowed:+.3} is allowed"),
        Some(_) => format!("{earns}, but honest growth earns {honest:+.3}"),
    }
}
