//! Writes the events of a run, and the trials of a sweep, into the tables of a folder: all of them, each whole, or none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::file::{TableFile, is_own};
use super::schema::{Column, tables};
use crate::health::{AtPath, FileError};
use crate::storage;
use crate::sweep::{Collected, CollectedTrial};
use crate::telemetry::{EVENTS_FILE, Event, EventReader, Payload, ReadError, SeedEnd, SeedLife, SeedLives};

/// Tables whose rows are drawn from several events, or parts of one.
const SEEDS: &str = "seeds";
const SEED_STEPS: &str = "seed_steps";
const TRIALS: &str = "trials";

/// The reason why tables were not written. Those of an earlier export are unchanged.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TableError {
    /// Nothing was recorded.
    #[error("{0} holds no events: the run ended before it began to train, and there is nothing to export")]
    NoEvents(PathBuf),
    /// An event that cannot be read.
    #[error(transparent)]
    Events(#[from] ReadError),
    /// A file or a folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// A table.
    #[error("the table {path} cannot be written: {cause}")]
    Table { path: PathBuf, cause: ParquetError },
    /// Another program's file.
    #[error("{0} wasn't written by export-tables and stays unchanged; choose another folder with -o")]
    Foreign(PathBuf),
}

impl TableError {
    fn of(path: &Path) -> impl FnOnce(ParquetError) -> Self {
        let path = path.to_path_buf();
        move |cause| Self::Table { path, cause }
    }
}

/// A table that was written.
#[derive(Debug, Serialize)]
pub struct ExportedTable {
    /// Its name.
    pub table: &'static str,
    /// Path of the file.
    pub file: PathBuf,
    /// Number of rows.
    pub rows: u64,
}

/// Writes the tables of the run in `run` into `folder`. One event and a group of rows of each table are in memory at a time.
///
/// # Errors
/// No events, one that cannot be read, another program's file of a table's name, or a folder that cannot be written.
pub fn export_run(run: &Path, folder: &Path) -> Result<Vec<ExportedTable>, TableError> {
    if !run.join(EVENTS_FILE).is_file() {
        return Err(TableError::NoEvents(run.into()));
    }
    Draft::written(folder, |draft| {
        let mut by_event = BTreeMap::new();
        for table in tables().into_iter().filter(|table| table.name != TRIALS) {
            by_event.extend(table.event.map(|event| (event, table.name)));
            draft.add(table.name, table.columns)?;
        }
        let mut lives = SeedLives::default();
        for event in EventReader::open(run)? {
            let event = event?;
            lives.apply(&event);
            if let Some(table) = by_event.get(event.payload.kind()) {
                draft.push(table, &json!(event))?;
            }
            draft.push_seeds(&mut lives, &event)?;
        }
        // The run is still played, or was killed: its last seeds are recorded as far as they came.
        draft.end_seeds(&mut lives)
    })
}

/// Writes the table of a sweep's trials into `folder`.
///
/// # Errors
/// Another program's file of that name, or a folder that cannot be written.
pub fn export_sweep(collected: &Collected, folder: &Path) -> Result<Vec<ExportedTable>, TableError> {
    let of_trials = tables().into_iter().filter(|table| table.name == TRIALS);
    let mut columns: Vec<Column> = of_trials.flat_map(|table| table.columns).collect();
    for setting in collected.trials.iter().flat_map(|trial| &trial.trial.settings) {
        if columns.iter().all(|column| column.name != setting.path) {
            columns.push(Column::text(&setting.path));
        }
    }
    Draft::written(folder, |draft| {
        draft.add(TRIALS, columns)?;
        let mut trials = collected.trials.iter();
        trials.try_for_each(|trial| draft.push(TRIALS, &trial_row(trial)))
    })
}

/// A seed: the event of its germination, with what followed.
fn seed_row(life: &SeedLife) -> Value {
    let (end, pruned) = match &life.end {
        SeedEnd::Open => (Value::Null, Value::Null),
        SeedEnd::Committed(data) => (json!(data), Value::Null),
        SeedEnd::Pruned { step, data } => (json!(data), json!({ "step": step, "data": data })),
    };
    // If it entered a stage twice, the first step counts.
    let entered = life.stages.iter().rev();
    let entered: Map<String, Value> = entered.map(|(step, stage)| (stage.to_string(), json!(step))).collect();
    let contribution = life.worth.contribution;
    json!({
        "round": life.at.round,
        "env": life.at.env,
        "episode": life.at.episode,
        "step": life.at.step,
        "slot": life.slot,
        "seed_id": life.id,
        "data": life.planted,
        "entered": entered,
        "last_stage": life.last_stage().to_string(),
        "end": end,
        "pruned": pruned,
        "contribution": contribution.map(|worth| json!({ "points": worth.points, "error": worth.standard_error })),
        "shapley": life.worth.shapley,
    })
}

/// A trial with values derived from its curve, and its settings by path.
fn trial_row(trial: &CollectedTrial) -> Value {
    let mut row = json!(trial);
    let state = trial.result.as_ref().map_or("waiting", |result| result.end.name());
    row["state"] = state.into();
    // A text: it may need all of 64 bits.
    row["seed"] = trial.trial.seed.0.to_string().into();
    if let Some(training) = trial.result.as_ref().and_then(|result| result.training.as_ref()) {
        row["rounds_played"] = training.curve.len().into();
        (row["env_steps"], row["train_s"]) = (training.env_steps().into(), training.seconds().into());
    }
    for setting in &trial.trial.settings {
        row[&setting.path] = setting.value.0.trim_matches('"').into();
    }
    row
}

/// Tables that stay in a separate folder until all of them are whole.
struct Draft<'a> {
    folder: &'a Path,
    hidden: PathBuf,
    tables: BTreeMap<&'static str, TableFile>,
}

impl Draft<'_> {
    fn written(
        folder: &Path,
        write: impl FnOnce(&mut Draft) -> Result<(), TableError>,
    ) -> Result<Vec<ExportedTable>, TableError> {
        let hidden = folder.join(format!(".draft-{}", std::process::id()));
        storage::create_dir_all(&hidden).at(&hidden)?;
        let mut draft = Draft {
            folder,
            hidden: hidden.clone(),
            tables: BTreeMap::new(),
        };
        let exported = write(&mut draft).and_then(|()| draft.publish());
        // After a failed draft, the returned error counts.
        _ = storage::remove_dir_all(&hidden);
        exported
    }

    fn add(&mut self, name: &'static str, columns: Vec<Column>) -> Result<(), TableError> {
        let there = self.place(name);
        let known = there.symlink_metadata();
        if known.is_ok_and(|at| !at.is_file() || !is_own(&there)) {
            return Err(TableError::Foreign(there));
        }
        let path = self.hidden.join(name);
        let file = TableFile::create(path.clone(), columns).map_err(TableError::of(&path))?;
        self.tables.insert(name, file);
        Ok(())
    }

    fn push(&mut self, table: &str, row: &Value) -> Result<(), TableError> {
        let Some(table) = self.tables.get_mut(table) else {
            return Ok(());
        };
        table.push(row).map_err(TableError::of(&table.path))
    }

    /// Rows of seeds of an event: for a step one each, at the end of a round all of its seeds.
    fn push_seeds(&mut self, lives: &mut SeedLives, event: &Event) -> Result<(), TableError> {
        match (&event.payload, event.context()) {
            (Payload::EnvStep(step), Some(at)) => step.seeds.iter().try_for_each(|seed| {
                let holder = lives.of(at.env).iter().rev().find(|life| life.slot == seed.slot);
                let row = json!({
                    "round": at.round,
                    "env": at.env,
                    "episode": at.episode,
                    "step": at.step,
                    "seed_id": holder.map(|life| &life.id),
                    "seed": seed,
                });
                self.push(SEED_STEPS, &row)
            }),
            (Payload::RoundFinished(_), _) => self.end_seeds(lives),
            _ => Ok(()),
        }
    }

    fn end_seeds(&mut self, lives: &mut SeedLives) -> Result<(), TableError> {
        let mut lives = lives.take().into_iter();
        lives.try_for_each(|life| self.push(SEEDS, &seed_row(&life)))
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_extension("parquet")
    }

    /// Ends all tables, then gives each its name.
    fn publish(mut self) -> Result<Vec<ExportedTable>, TableError> {
        let mut whole = Vec::new();
        for (table, file) in std::mem::take(&mut self.tables) {
            let (path, rows) = (file.path.clone(), file.rows);
            file.finish().map_err(TableError::of(&path))?;
            let file = self.place(table);
            whole.push((path, ExportedTable { table, file, rows }));
        }
        for (path, ExportedTable { file, .. }) in &whole {
            storage::rename(path, file).at(file)?;
        }
        storage::sync_folder(self.folder).at(self.folder)?;
        Ok(whole.into_iter().map(|(_, table)| table).collect())
    }
}
