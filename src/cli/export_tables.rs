//! `export-tables`: a run or a sweep as Parquet tables.

use std::fmt::Write;

use super::output::show_either;
use super::rejection::Rejection;
use super::{Context, ExportTablesOptions, Outcome};
use crate::checkpoint::ResumeError;
use crate::record::{RunDirectory, find_run};
use crate::sweep::{Collected, FolderError, SweepFolder};
use crate::tables::{ExportedTable, TableError, export_run, export_sweep};

/// Writes the tables, and says what they are.
pub fn export_tables(options: &ExportTablesOptions, context: &Context) -> Result<Outcome, Rejection> {
    let tables = match SweepFolder::open(&options.run, options.out.as_deref()) {
        Ok((folder, plan)) => {
            let collected = Collected::read(&folder, &plan).map_err(TableError::from)?;
            export_sweep(&collected, &options.output)?
        }
        Err(FolderError::Missing { .. }) => {
            let place = find_run(&options.run, options.out.as_deref())?;
            if !RunDirectory::is_at(&place) {
                return Err(ResumeError::NoRun(place).into());
            }
            export_run(&place, &options.output)?
        }
        Err(error) => return Err(Rejection::Usage(error.to_string())),
    };
    Ok(show_either(context.global, &tables, || lines(&tables)))
}

fn lines(tables: &[ExportedTable]) -> String {
    let mut text = String::new();
    for ExportedTable { file, rows, .. } in tables {
        _ = writeln!(text, "{}: {rows} rows", file.display());
    }
    text
}
