//! The events of a run, and the trials of a sweep, into the tables of a folder: all of them, each whole, or none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use serde::Serialize;
use serde_json::{Value, json};

use super::file::{TableFile, is_own};
use super::lives::SeedLives;
use super::schema::{self, Column};
use crate::health::{AtPath, FileError};
use crate::storage;
use crate::sweep::{Collected, CollectedTrial};
use crate::telemetry::{EVENTS_FILE, Event, EventReader, Payload, ReadError};

/// Tables whose rows are events of a kind.
const TABLES: [(&str, &str); 5] = [
    ("rounds", "round_finished"),
    ("steps", "env_step"),
    ("decisions", "decision"),
    ("updates", "learner_update"),
    ("episodes", "episode_finished"),
];
/// Tables whose rows are drawn from several events, or parts of one.
const SEEDS: &str = "seeds";
const SEED_STEPS: &str = "seed_steps";
const TRIALS: &str = "trials";

/// Why tables were not written; those of an earlier export are as they were.
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
    #[error("{0} was not written by export-tables and is left as it is; choose another folder with -o")]
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
    /// Where it is.
    pub file: PathBuf,
    /// How many it has.
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
    let names = TABLES.iter().map(|(table, _)| *table).chain([SEEDS, SEED_STEPS]);
    Draft::written(folder, |draft| {
        for name in names {
            draft.add(name, schema::columns(name))?;
        }
        let mut lives = SeedLives::default();
        for event in EventReader::open(run)? {
            take(draft, &mut lives, &event?)?;
        }
        // Of a run that is played, or was killed: its last seeds as far as they came.
        lives.close().try_for_each(|life| draft.push(SEEDS, &life))
    })
}

/// Writes the table of a sweep's trials into `folder`.
///
/// # Errors
/// Another program's file of that name, or a folder that cannot be written.
pub fn export_sweep(collected: &Collected, folder: &Path) -> Result<Vec<ExportedTable>, TableError> {
    let mut columns = schema::columns(TRIALS);
    for setting in collected.trials.iter().flat_map(|trial| &trial.trial.settings) {
        if columns.iter().all(|column| column.name != setting.path) {
            columns.push(Column::text(&setting.path));
        }
    }
    Draft::written(folder, |draft| {
        draft.add(TRIALS, columns)?;
        collected
            .trials
            .iter()
            .try_for_each(|trial| draft.push(TRIALS, &trial_row(trial)))
    })
}

fn take(draft: &mut Draft, lives: &mut SeedLives, event: &Event) -> Result<(), TableError> {
    let row = json!(event);
    lives.take(event, &row);
    if let Payload::EnvStep(step) = &event.payload {
        for seed in &step.seeds {
            let mut row =
                json!({ "round": event.round, "env": event.env, "episode": event.episode, "step": event.step });
            (row["seed_id"], row["seed"]) = (json!(lives.holder(event.env, seed.slot)), json!(seed));
            draft.push(SEED_STEPS, &row)?;
        }
    }
    if let Some((table, _)) = TABLES.iter().find(|(_, kind)| *kind == event.payload.kind()) {
        draft.push(table, &row)?;
    }
    match event.payload {
        Payload::RoundFinished(_) => lives.close().try_for_each(|life| draft.push(SEEDS, &life)),
        _ => Ok(()),
    }
}

/// A trial with what follows from its curve, and its settings by path.
fn trial_row(trial: &CollectedTrial) -> Value {
    let mut row = json!(trial);
    row["state"] = trial
        .result
        .as_ref()
        .map_or("waiting", |result| result.end.name())
        .into();
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

/// Tables that stand in a folder of their own until all of them are whole.
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
        // Of a draft that failed, the error that is returned counts.
        _ = storage::remove_dir_all(&hidden);
        exported
    }

    fn add(&mut self, name: &'static str, columns: Vec<Column>) -> Result<(), TableError> {
        let there = self.place(name);
        if there
            .symlink_metadata()
            .is_ok_and(|at| !at.is_file() || !is_own(&there))
        {
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
