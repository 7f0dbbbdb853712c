//! `simic-engine reward-audit SCENARIO`.

use std::path::Path;

use super::prepare::prepare_file;
use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::report::{audit_text, exploited};
use crate::reward::audit;

/// Plays the scripted exploiters against the reward of a scenario, and says by how much each earns too much.
///
/// # Errors
/// A scenario with problems; a reward that cannot be computed.
pub fn reward_audit(scenario: &Path, sets: &[String], context: &Context) -> Result<Outcome, Rejection> {
    let loaded = prepare_file(scenario, sets, context)?.loaded;
    let audit = audit(&loaded.scenario, &loaded.task, &context.names.rewards)?;
    let printer = context.printer;
    let shown = printer.show_either(&audit, || audit_text(&audit, printer.width()));
    let Some(failed) = audit.first_failure() else {
        return Ok(shown);
    };
    printer.note(format_args!(
        "reward {} can be exploited: {}",
        audit.mode,
        exploited(failed, &audit)
    ));
    Ok(shown.unless_done(Outcome::Exploitable))
}
