//! With any content of a file, its reader ends soon, in memory that the file accounts for, with a value or with an error that
//! names the file; and what was written is read back as it was.
//!
//! Each target runs for a second; `SIMIC_ENGINE_FUZZ_SECONDS=600 cargo test --test engine fuzz::sweeps::` looks longer.

mod damage;
mod events;
mod found;
mod harness;
mod images;
mod run_folder;
mod scenarios;
mod sweeps;
mod texts;
