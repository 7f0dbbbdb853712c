//! Recorded runs and sweeps as Parquet tables, for programs. `schema.rs` declares the columns, and is the source of
//! `docs/reference/tables.md`.
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
