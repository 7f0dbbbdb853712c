//! `simic-engine reward-audit SCENARIO`.

use std::path::Path;

use super::output::{print_note, show_either, width};
use super::rejection::Rejection;
use super::{Context, Outcome, scenario_file};
use crate::report::{audit_text, exploited};
use crate::reward::audit;
use crate::scenario::Override;

/// Plays the scripted exploiters against the reward of a scenario, and says by how much each earns too much.
///
/// # Errors
/// A scenario with problems; a reward that cannot be computed.
pub fn reward_audit(scenario: &Path, sets: &[String], context: &Context) -> Result<Outcome, Rejection> {
    let overrides = sets.iter().map(|assignment| Override::parse(assignment));
    let overrides = overrides.collect::<Result<Vec<_>, _>>()?;
    let loaded = scenario_file::load(scenario, &overrides, &context.catalog)?.loaded;
    let usage = |error: &dyn std::fmt::Display| Rejection::Usage(error.to_string());
    let audit = audit(&loaded.scenario, &loaded.task, &context.names.rewards).map_err(|error| usage(&error))?;
    let shown = show_either(context.global, &audit, || audit_text(&audit, width()));
    let Some(failed) = audit.first_failure() else {
        return Ok(shown);
    };
    print_note(format_args!(
        "reward {} can be exploited: {}",
        audit.mode,
        exploited(failed, &audit)
    ));
    Ok(shown.unless_done(Outcome::Exploitable))
}
