//! `export-tables` as a user meets it: what is written, what is left alone, and how little memory it takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::program::{
    assert_has, copy_of, engine_at, events, json, names, newest, played, read, refused, succeeds, write,
};

const SCENARIO: &str = r#"(
    task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 2, n_envs: 2, max_steps: 6),
    policy: (controller: "periodic"),
)"#;

/// A run in a folder that ends with the test.
fn run() -> (tempfile::TempDir, PathBuf) {
    static RUN: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            write(&folder.join("tiny.ron"), SCENARIO);
            succeeds(&engine_at(folder, "run tiny.ron --quiet"));
        })
    });
    let folder = copy_of(&RUN);
    let run = newest(&folder.path().join("runs"));
    (folder, run)
}

fn export(folder: &Path, more: &str) -> std::process::Output {
    engine_at(folder, &format!("export-tables latest -o new/tables {more}"))
}

fn numbers(table: &Path, column: &str) -> Vec<f64> {
    let reader = SerializedFileReader::new(fs::File::open(table).expect("it is there")).expect("a table");
    let rows = reader.get_row_iter(None).expect("rows");
    let number = |row: parquet::record::Row| {
        let mut columns = row.get_column_iter();
        match columns.find(|(name, _)| *name == column) {
            Some((_, Field::Double(number))) => *number,
            other => panic!("{column} isn't a number: {other:?}"),
        }
    };
    rows.map(|row| number(row.expect("a row"))).collect()
}

#[test]
fn a_run_becomes_tables_with_the_numbers_of_its_events() {
    let (folder, run) = run();
    let tables = folder.path().join("new/tables");

    let said = succeeds(&export(folder.path(), ""));

    let files = "decisions episodes rounds seed_steps seeds steps updates".split(' ');
    let files = files.map(|name| format!("{name}.parquet"));
    assert_eq!(names(&tables), files.collect::<Vec<_>>());
    assert_has(&said, &["rounds.parquet: 2 rows\n", "steps.parquet: 24 rows\n"]);
    let steps = events(&run, "env_step").into_iter();
    let losses: Vec<f64> = steps.filter_map(|event| event["data"]["val_loss"].as_f64()).collect();
    assert_eq!(numbers(&tables.join("steps.parquet"), "val_loss"), losses);
}

#[test]
fn an_earlier_export_is_replaced_and_another_program_s_file_is_not() {
    let (folder, _) = run();
    let tables = folder.path().join("new/tables");
    succeeds(&export(folder.path(), ""));
    let listed = json(&succeeds(&export(folder.path(), "--json")));
    let mut listed = listed.as_array().expect("a list").iter();
    let rounds = listed.find(|table| table["table"] == "rounds");
    assert_eq!(rounds.expect("it is listed")["rows"], 2);
    let rounds = fs::read(tables.join("rounds.parquet")).expect("it is there");
    write(&tables.join("steps.parquet"), "mine");

    let complaint = refused(&export(folder.path(), ""));

    let mine = "steps.parquet wasn't written by export-tables and stays unchanged";
    assert_has(&complaint, &[mine]);
    assert_eq!(read(&tables.join("steps.parquet")), "mine");
    assert_eq!(fs::read(tables.join("rounds.parquet")).expect("it is there"), rounds);
    assert_eq!(names(&tables).len(), 7, "no draft is left");
}

#[test]
fn a_damaged_event_is_named_and_nothing_is_written() {
    let (folder, run) = run();
    let events = run.join("events.jsonl");
    write(&events, read(&events).replacen("\"val_loss\"", "\"loss\"", 1));

    let complaint = refused(&export(folder.path(), ""));

    assert_has(&complaint, &["events.jsonl:", "val_loss"]);
    let tables = names(&folder.path().join("new/tables"));
    assert!(tables.is_empty(), "{tables:?}");
}

#[test]
fn a_torn_last_line_is_left_out() {
    let (folder, run) = run();
    let events = run.join("events.jsonl");
    let text = read(&events);
    let end = text.find("\"round_finished\"").expect("a round has ended") + 20;
    write(&events, &text[..end]);

    let said = succeeds(&export(folder.path(), ""));

    assert_has(&said, &["rounds.parquet: 0 rows\n", "steps.parquet: 12 rows\n"]);
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "long tier"]
fn memory_does_not_grow_with_the_record() {
    use crate::program::{command, copy, peak_memory};

    let (folder, run) = run();
    let text = read(&run.join("events.jsonl"));
    let (header, events) = text.split_once('\n').expect("a header");
    let peak = |megabytes: usize| {
        let long = folder.path().join(megabytes.to_string());
        copy(&run, &long);
        // The record many times over.
        let repeated = events.repeat((megabytes << 20) / events.len() + 1);
        write(&long.join("events.jsonl"), format!("{header}\n{repeated}"));
        let tables = folder.path().join(format!("tables-{megabytes}"));
        peak_memory(command("export-tables -o").arg(tables).arg(&long))
    };

    let (short, long) = (peak(6), peak(18));

    // Less than the events themselves.
    assert!(long < short + (12 << 20), "{short} bytes, then {long}");
}
