//! `diff`: where two runs part.

use super::rejection::Rejection;
use super::{Context, DiffOptions, Outcome};
use crate::inspect::diff as compare;
use crate::record::find_run;

/// Compares two runs and prints what differs first.
pub fn diff(options: &DiffOptions, context: &Context) -> Result<Outcome, Rejection> {
    let find = |run| find_run(run, options.out.as_deref());
    let (left, right) = (find(&options.left)?, find(&options.right)?);
    let found = compare(&left, &right, &options.kinds(), options.extent())?;
    let shown = context.printer.show_either(&found, || {
        if found.differences.is_empty() {
            let compared: Vec<String> = found.compared.iter().map(ToString::to_string).collect();
            return format!("no difference in {}\n", compared.join(", "));
        }
        let lines = found.differences.iter().map(|difference| format!("{difference}\n"));
        lines.collect()
    });
    Ok(shown.unless_done(match found.differences.is_empty() {
        true => Outcome::Done,
        false => Outcome::Different,
    }))
}
