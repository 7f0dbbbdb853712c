//! Recorded runs and sweeps as Parquet tables, for programs. What the tables hold is declared in `schema.rs`, from which
//! `docs/reference/tables.md` is written.
//!
//! ```text
//! events.jsonl ──reader──► events ──export──► rows ──schema──► cells ──file──► DIR/steps.parquet, …
//! ```

mod schema;
mod file;
mod export;

pub use export::{ExportedTable, TableError, export_run, export_sweep};
pub use schema::{CellKind, Column, Table, tables};

#[cfg(test)]
mod tests;
