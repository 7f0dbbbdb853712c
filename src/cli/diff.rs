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
    let printer = context.printer;
    let shown = if context.global.json {
        printer.show_json(&found)
    } else if found.differences.is_empty() {
        let compared: Vec<String> = found.compared.iter().map(ToString::to_string).collect();
        printer.show(format_args!("no difference in {}\n", compared.join(", ")))
    } else {
        let lines: Vec<String> = found
            .differences
            .iter()
            .map(|difference| format!("{difference}\n"))
            .collect();
        printer.show(lines.concat())
    };
    Ok(shown.unless_done(match found.differences.is_empty() {
        true => Outcome::Done,
        false => Outcome::Different,
    }))
}
