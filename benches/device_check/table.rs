//! The table of the rows that were played.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

/// Writes `table.md` from `rows.jsonl`, prints it and returns how many rows have failed.
pub fn write(out: &Path) -> io::Result<usize> {
    let text = fs::read_to_string(out.join("rows.jsonl"))?;
    let rows: Vec<Value> = text.lines().flat_map(serde_json::from_str).collect();
    let mut table = String::from("| row | result | figures | s |\n| --- | --- | --- | ---: |\n");
    for row in &rows {
        let name = row["row"].as_str().unwrap_or_default();
        let figures = match row["figures"].as_object() {
            Some(figures) => {
                let named = figures.iter().map(|(name, value)| format!("{name} {}", number(value)));
                named.collect::<Vec<_>>().join(" · ")
            }
            None => {
                let why = row["why"].as_str().and_then(|why| why.lines().next());
                why.unwrap_or_default().replace('|', "/")
            }
        };
        let result = match row["ok"] == true {
            true if row["figures"]["skipped"].is_string() => "skipped",
            true => "ok",
            false => "**failed**",
        };
        let seconds = row["seconds"].as_f64().unwrap_or_default();
        let _ = writeln!(table, "| {name} | {result} | {figures} | {seconds:.1} |");
    }
    fs::write(out.join("table.md"), &table)?;
    println!("{table}");
    Ok(rows.iter().filter(|row| row["ok"] != true).count())
}

/// Three digits that count.
fn number(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(number) if number == 0.0 || (number.fract() == 0.0 && number.abs() < 1e9) => format!("{number:.0}"),
            Some(number) if number.abs() >= 1e5 || number.abs() < 1e-2 => format!("{number:.2e}"),
            Some(number) if number.abs() >= 100.0 => format!("{number:.0}"),
            Some(number) if number.abs() >= 10.0 => format!("{number:.1}"),
            Some(number) => format!("{number:.2}"),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}
