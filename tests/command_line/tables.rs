//! `export-tables` as a user meets it: what is written, what is left alone, and how little memory it takes.

use std::fs;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::program::{call, command, ended, engine, newest, refused, succeeds};
use crate::support::lines;

const SCENARIO: &str = r#"(
    name: "tiny",
    task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 2, n_envs: 2, max_steps: 6),
    policy: (controller: "periodic"),
)"#;

/// A run in a folder that ends with the test.
fn played() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("tiny.ron");
    fs::write(&scenario, SCENARIO).expect("it is written");
    let out = folder.path().join("runs");
    let mut run = call(&["run", "--quiet", "--progress", "none", "--out"]);
    succeeds(&ended(run.arg(&out).arg(&scenario)));
    let run = newest(&out);
    (folder, run)
}

fn export(run: &Path, tables: &Path) -> std::process::Output {
    ended(call(&["export-tables", "-o"]).arg(tables).arg(run))
}

fn numbers(table: &Path, column: &str) -> Vec<f64> {
    let reader = SerializedFileReader::new(fs::File::open(table).expect("it is there")).expect("a table");
    let rows = reader.get_row_iter(None).expect("rows");
    let number = |row: parquet::record::Row| {
        let cell = row
            .get_column_iter()
            .find(|(name, _)| *name == column)
            .map(|(_, cell)| cell.clone());
        match cell {
            Some(Field::Double(number)) => number,
            other => panic!("{column} is no number: {other:?}"),
        }
    };
    rows.map(|row| number(row.expect("a row"))).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().display().to_string())
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_becomes_tables_with_the_numbers_of_its_events() {
    let (folder, run) = played();
    let tables = folder.path().join("new/tables");

    let said = succeeds(&export(&run, &tables));

    let files = [
        "decisions",
        "episodes",
        "rounds",
        "seed_steps",
        "seeds",
        "steps",
        "updates",
    ];
    assert_eq!(names(&tables), files.map(|name| format!("{name}.parquet")));
    assert!(
        said.contains("rounds.parquet: 2 rows\n") && said.contains("steps.parquet: 24 rows\n"),
        "{said}"
    );
    let of_events = lines(&run).into_iter().filter(|event| event["type"] == "env_step");
    let of_events: Vec<f64> = of_events
        .filter_map(|event| event["data"]["val_loss"].as_f64())
        .collect();
    assert_eq!(numbers(&tables.join("steps.parquet"), "val_loss"), of_events);
}

#[test]
fn an_earlier_export_is_replaced_and_another_program_s_file_is_not() {
    let (folder, run) = played();
    let tables = folder.path().join("tables");
    succeeds(&export(&run, &tables));
    succeeds(&export(&run, &tables));
    let rounds = fs::read(tables.join("rounds.parquet")).expect("it is there");
    fs::write(tables.join("steps.parquet"), "mine").expect("it is written");

    let complaint = refused(&export(&run, &tables));

    assert!(
        complaint.contains("steps.parquet was not written by export-tables and is left as it is"),
        "{complaint}"
    );
    assert_eq!(fs::read(tables.join("steps.parquet")).expect("it is there"), b"mine");
    assert_eq!(fs::read(tables.join("rounds.parquet")).expect("it is there"), rounds);
    assert_eq!(names(&tables).len(), 7, "no draft is left");
}

#[test]
fn a_damaged_event_is_named_and_nothing_is_written() {
    let (folder, run) = played();
    let tables = folder.path().join("tables");
    let events = run.join("events.jsonl");
    let text = fs::read_to_string(&events).expect("it is there");
    fs::write(&events, text.replacen("\"val_loss\"", "\"loss\"", 1)).expect("it is written");

    let complaint = refused(&export(&run, &tables));

    assert!(
        complaint.contains("events.jsonl:") && complaint.contains("val_loss"),
        "{complaint}"
    );
    assert_eq!(names(&tables), Vec::<String>::new());
}

#[test]
fn a_torn_last_line_is_left_out() {
    let (folder, run) = played();
    let events = run.join("events.jsonl");
    let text = fs::read_to_string(&events).expect("it is there");
    let end = text.find("\"round_finished\"").expect("a round has ended") + 20;
    fs::write(&events, &text[..end]).expect("it is written");

    let said = succeeds(&export(&run, &folder.path().join("tables")));

    assert!(
        said.contains("rounds.parquet: 0 rows\n") && said.contains("steps.parquet: 12 rows\n"),
        "{said}"
    );
}

#[test]
fn what_is_no_run_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().display().to_string();
    let complaint = refused(&engine(&["export-tables", &at, "-o", "tables"]));
    assert!(complaint.contains("is no run directory"), "{complaint}");
}

/// The record of a run many times over, in a folder of its own.
fn repeated(run: &Path, into: &Path, bytes: usize) {
    fs::create_dir(into).expect("a folder");
    for file in ["manifest.json", "resolved.ron"] {
        fs::copy(run.join(file), into.join(file)).expect("it is copied");
    }
    let text = fs::read_to_string(run.join("events.jsonl")).expect("it is there");
    let (header, events) = text.split_once('\n').expect("a header");
    let mut repeated = format!("{header}\n");
    while repeated.len() < bytes {
        repeated += events;
    }
    fs::write(into.join("events.jsonl"), repeated).expect("it is written");
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_record() {
    let (folder, run) = played();
    let peak = |megabytes: usize| {
        let long = folder.path().join(megabytes.to_string());
        repeated(&run, &long, megabytes << 20);
        let tables = folder.path().join(format!("tables-{megabytes}"));
        crate::program::peak_memory(command(&["export-tables", "-o"]).arg(tables).arg(&long))
    };

    let (short, long) = (peak(6), peak(18));

    // Less than the events themselves.
    assert!(long < short + (12 << 20), "{short} bytes, then {long}");
}

#[test]
fn a_program_is_told_what_was_written() {
    let (folder, run) = played();
    let tables = folder.path().join("tables");
    let document = succeeds(&ended(call(&["export-tables", "--json", "-o"]).arg(&tables).arg(&run)));

    let written: Value = serde_json::from_str(&document).expect("JSON");

    let rounds = written
        .as_array()
        .and_then(|tables| tables.iter().find(|table| table["table"] == "rounds"));
    assert_eq!(rounds.map(|table| &table["rows"]), Some(&2.into()));
}
