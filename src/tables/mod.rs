//! Recorded runs and sweeps as Parquet tables, for programs. What the tables hold is declared in `docs/reference/tables.md`, which is
//! read by people and by `schema.rs`.
//!
//! ```text
//! events.jsonl ──reader──► events ──lives──► rows ──schema──► cells ──file──► DIR/steps.parquet, …
//! ```

mod schema;
mod lives;
mod file;
mod export;

pub use export::{ExportedTable, TableError, export_run, export_sweep};

#[cfg(test)]
mod tests;
