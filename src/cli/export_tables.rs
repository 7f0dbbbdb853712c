//! `export-tables`: a run or a sweep as Parquet tables.

use super::named::{Named, held_run};
use super::rejection::Rejection;
use super::{Context, ExportTablesOptions, Outcome};
use crate::sweep::Collected;
use crate::tables::{ExportedTable, export_run, export_sweep};

/// Writes the tables, and says what they are.
pub fn export_tables(options: &ExportTablesOptions, context: &Context) -> Result<Outcome, Rejection> {
    let tables = match Named::find(&options.run, options.out.as_deref())? {
        Named::Sweep(folder, plan) => export_sweep(&Collected::read(&folder, &plan)?, &options.output)?,
        Named::Run(place) => export_run(&held_run(place)?, &options.output)?,
    };
    let line = |table: &ExportedTable| format!("{}: {} rows\n", table.file.display(), table.rows);
    let lines = || tables.iter().map(line).collect::<String>();
    Ok(context.printer.show_either(&tables, lines))
}
