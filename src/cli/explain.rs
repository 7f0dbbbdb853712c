//! `simic-engine explain PATH`.

use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::scenario::{self, Catalog, Explanation, Scenario, UnknownField};
use crate::sweep::SweepFile;

/// Before the dotted paths of sweep files.
pub const SWEEP: &str = "sweep";

pub fn explain(path: &str, context: &Context) -> Result<Outcome, Rejection> {
    let explanation = explanation(path, &context.catalog)?;
    Ok(context.printer.show_either(&explanation, || &explanation))
}

/// Of a field of a scenario, or of a sweep file.
fn explanation(path: &str, catalog: &Catalog) -> Result<Explanation, UnknownField> {
    let of_sweep = |below: &str| scenario::explain::<SweepFile>(SWEEP, below, catalog);
    match path.split_once('.').unwrap_or((path, "")) {
        (SWEEP, below) => of_sweep(below),
        _ => scenario::explain::<Scenario>("", path, catalog).map_err(|unknown| UnknownField {
            suggestion: of_sweep(path).map_or(unknown.suggestion, |found| Some(found.path)),
            ..unknown
        }),
    }
}
