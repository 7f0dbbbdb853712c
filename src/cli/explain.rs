//! `simic-engine explain PATH`.

use super::Outcome;
use crate::scenario::{self, Catalog};

pub fn explain(path: &str, catalog: &Catalog) -> Outcome {
    match scenario::explain(path, catalog) {
        Ok(text) => {
            print!("{text}");
            Outcome::Done
        }
        Err(unknown) => {
            eprintln!("{unknown}");
            Outcome::Rejected
        }
    }
}
