//! `simic-engine explain PATH`.

use super::output::{refuse, show, show_json};
use super::{Context, Outcome};
use crate::scenario;

pub fn explain(path: &str, context: &Context) -> Outcome {
    match scenario::explain(path, &context.catalog) {
        Ok(explanation) => {
            if context.global.json {
                show_json(&explanation)
            } else {
                show(explanation)
            }
        }
        Err(unknown) => {
            refuse(context.global, unknown);
            Outcome::Rejected
        }
    }
}
