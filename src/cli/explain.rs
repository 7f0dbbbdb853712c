//! `simic-engine explain PATH`.

use super::output::{show, show_json};
use super::{GlobalOptions, Outcome};
use crate::scenario::{self, Catalog};

pub fn explain(path: &str, catalog: &Catalog, global: &GlobalOptions) -> Outcome {
    match scenario::explain(path, catalog) {
        Ok(explanation) => {
            if global.json {
                show_json(&explanation);
            } else {
                show(explanation);
            }
            Outcome::Done
        }
        Err(unknown) => {
            eprintln!("error: {unknown}");
            Outcome::Rejected
        }
    }
}
