//! `simic-engine reward-audit SCENARIO`.

use std::path::Path;

use super::output::{show_either, tell, width, wrapped};
use super::rejection::Rejection;
use super::{Context, Outcome, scenario_file};
use crate::record::Table;
use crate::reward::{Audit, AuditRow, audit};
use crate::scenario::Override;

/// The column that goes where there is no room for it.
const SUMMARY: &str = "what it does";

const EXPLANATION: &str = "Nothing is trained: scripts play the scenario's lifecycle with seeds of known worth on a host \
                           that reads 30 % without them. No exploiter may earn more than waiting or as much as honest growth; \
                           commit_at_once may earn what its committed accuracy is worth.";

/// Plays the scripted exploiters against the reward of a scenario, and says by how much each earns too much.
///
/// # Errors
/// A scenario with problems; a reward that cannot be computed.
pub fn reward_audit(scenario: &Path, sets: &[String], context: &Context) -> Result<Outcome, Rejection> {
    let overrides = sets.iter().map(|assignment| Override::parse(assignment));
    let overrides = overrides.collect::<Result<Vec<_>, _>>().map_err(Rejection::Usage)?;
    let loaded = scenario_file::load(scenario, &overrides, &context.catalog)?.loaded;
    let usage = |error: &dyn std::fmt::Display| Rejection::Usage(error.to_string());
    let audit = audit(&loaded.scenario, &loaded.task, &context.names.rewards).map_err(|error| usage(&error))?;
    let shown = show_either(context.global, &audit, || text(&audit));
    let Some(failed) = audit.first_failure() else {
        return Ok(shown);
    };
    tell(format_args!(
        "reward {} can be exploited: {}",
        audit.mode,
        reason(failed, &audit)
    ));
    Ok(shown.unless_done(Outcome::Exploitable))
}

fn text(audit: &Audit) -> String {
    let mut table = Table::new(&["strategy", "verdict", SUMMARY], &["committed %", "return", "allowed"]);
    for row in &audit.rows {
        table.push(vec![
            row.strategy.into(),
            if row.passes { "ok" } else { "FAILS" }.into(),
            row.summary.into(),
            format!("{:.1}", row.committed_accuracy),
            format!("{:+.3}", row.discounted),
            row.allowed
                .map_or_else(|| "-".into(), |allowed| format!("{allowed:+.3}")),
        ]);
    }
    format!(
        "reward {} over {} steps, discounted by {} a step\n\n{}\n{}\n",
        audit.mode,
        audit.max_steps,
        audit.gamma,
        table.render_within(width(), &[SUMMARY]),
        wrapped(EXPLANATION, width())
    )
}

fn reason(row: &AuditRow, audit: &Audit) -> String {
    let honest = audit.rows.iter().find(|row| row.strategy == "honest_growth");
    let honest = honest.map_or(f64::NAN, |row| row.discounted);
    let earns = format!("{} ({}) earns {:+.3}", row.strategy, row.summary, row.discounted);
    match row.allowed {
        None => format!("{earns}, no more than waiting"),
        Some(allowed) if row.discounted > allowed => format!("{earns}, {allowed:+.3} is allowed"),
        Some(_) => format!("{earns}, honest growth {honest:+.3}"),
    }
}
