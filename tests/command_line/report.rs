//! `report`: the page of a run, from its record alone.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use crate::program::{command, ended, engine_at, newest, refused, succeeds, text, tiny};

const RUN: &str = "rounds: 3, n_envs: 2, max_steps: 8, seed: 7, keep: best";

fn played(folder: &Path) {
    fs::write(folder.join("tiny.ron"), tiny(RUN)).expect("the scenario is written");
    let tag = "</script><script>alert(1)</script>";
    succeeds(&engine_at(
        folder,
        &["run", "tiny.ron", "--progress", "none", "--tag", tag],
    ));
}

fn report(folder: &Path) -> (String, String) {
    let output = engine_at(folder, &["report", "latest", "-o", "report.html"]);
    let (page, said) = (folder.join("report.html"), text(&output.stderr));
    assert_eq!(succeeds(&output), format!("written to {}\n", page.display()));
    let page = fs::read_to_string(page).expect("the page is there");
    (page, said)
}

/// The cells of the table below the chart of that id, row by row.
fn cells(page: &str, chart: &str) -> Vec<Vec<String>> {
    let figure = page
        .split(&format!("data-chart=\"{chart}\""))
        .nth(1)
        .expect("the chart is there");
    let table = figure.split("</table>").next().unwrap_or_default();
    let rows = table.split("<tr>").skip(2);
    let row = |row: &str| {
        row.split("<td>")
            .skip(1)
            .filter_map(|cell| Some(cell.split('<').next()?.to_owned()))
            .collect()
    };
    rows.map(row).collect()
}

#[test]
fn the_page_of_a_run_has_its_numbers_and_asks_nothing_of_a_network() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    played(folder.path());

    let (page, said) = report(folder.path());

    assert_eq!(said, "");
    let shown = succeeds(&engine_at(folder.path(), &["show", "latest", "--json"]));
    let shown: Value = serde_json::from_str(&shown).expect("one JSON document");
    let rounds = shown["results"]["rounds"].as_array().expect("a list");
    let table = cells(&page, "accuracy");
    assert_eq!(table.len(), 3);
    for (row, round) in table.iter().zip(rounds) {
        let close = |cell: &str, number: &Value| {
            let (cell, number) = (
                cell.parse::<f64>().expect("a number"),
                number.as_f64().expect("a number"),
            );
            assert!((cell - number).abs() < 1e-3, "{cell} {number}");
        };
        close(&row[2], &round["accuracy_mean"]);
        close(&row[3], &round["accuracy_best"]);
    }
    let loads = ["src=\"", "href=\"http", "url(", "@import"];
    assert!(
        loads.iter().all(|load| !page.contains(load)),
        "the page loads something"
    );
    assert!(page.contains("What is the grown network?"));
    assert!(!page.contains("<script>alert"));
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
}

#[test]
fn a_record_that_cannot_be_read_to_its_end_is_told_and_shown_as_far_as_it_goes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    played(folder.path());
    let events = newest(&folder.path().join("runs")).join("events.jsonl");
    let whole = fs::read_to_string(&events).expect("the record is there");
    let append = |line: &str| {
        let file = OpenOptions::new().append(true).open(&events);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("it is written");
    };

    append("{\"seq\":99");
    let (page, said) = report(folder.path());
    assert!(
        said.is_empty() && page.contains("3 of 3 rounds"),
        "half a line is one that is being written: {said}"
    );

    append("}\n");
    let (page, said) = report(folder.path());
    assert!(
        said.contains("events.jsonl:") && said.ends_with("the report is of the events before\n"),
        "{said}"
    );
    assert!(page.contains("class=\"problem\"") && page.contains("3 of 3 rounds"));

    fs::write(&events, whole.replacen("\"major\":3", "\"major\":9", 1)).expect("it is written");
    let (page, said) = report(folder.path());
    assert!(said.contains("written with telemetry schema 9"), "{said}");
    assert!(page.contains("No episode has ended yet."));

    fs::remove_file(&events).expect("it was there");
    let (page, _) = report(folder.path());
    assert!(page.contains("it has not begun"));
}

#[test]
fn what_cannot_be_served_or_named_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let complaint = |arguments: &[&str]| refused(&ended(command(arguments).current_dir(folder.path())));

    assert!(complaint(&["report"]).contains("name a run, or give --http for the list of all"));
    assert!(complaint(&["report", "--http", "0.0.0.0:7860"]).contains("not an address of this machine alone"));
    assert!(complaint(&["report", "nothing"]).contains("nothing"));
    assert!(!folder.path().join("report.html").exists());
}

const SWEEP: &str = r#"(
    name: "pair",
    scenario: "tiny.ron",
    points: [(name: "learned", set: []), (name: "rule", set: [(path: "policy.controller", value: "heuristic")])],
    replicates: 3,
)"#;

/// The cells of the first table of a section, row by row.
pub fn section_table(page: &str, id: &str) -> Vec<Vec<String>> {
    let section = page
        .split(&format!("<section id=\"{id}\""))
        .nth(1)
        .expect("the section is there");
    let table = section
        .split("<tbody>")
        .nth(1)
        .and_then(|rest| rest.split("</tbody>").next());
    let cells = |row: &str| -> Vec<String> {
        let cells = row.split("<td").skip(1);
        cells
            .filter_map(|cell| Some(cell.split_once('>')?.1.split('<').next()?.to_owned()))
            .collect()
    };
    table.unwrap_or_default().split("<tr>").skip(1).map(cells).collect()
}

#[test]
fn the_page_of_a_sweep_has_the_numbers_of_compare() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(
        folder.path().join("tiny.ron"),
        tiny(RUN).replace("rounds: 3", "rounds: 2"),
    )
    .expect("it is written");
    fs::write(folder.path().join("pair.ron"), SWEEP).expect("it is written");
    let run = |arguments: &[&str]| succeeds(&engine_at(folder.path(), arguments));
    run(&["sweep", "pair.ron", "-q"]);

    let page = folder.path().join("sweep.html");
    let told = run(&["report", "pair", "-o", "sweep.html"]);
    assert_eq!(told, format!("written to {}\n", page.display()));
    let compared: Value =
        serde_json::from_str(&run(&["compare", "pair", "--report", "pair.html", "--json"])).expect("one JSON document");

    for file in ["sweep.html", "pair.html"] {
        let page = fs::read_to_string(folder.path().join(file)).expect("the page is there");
        let methods = section_table(&page, "methods");
        let expected = compared["methods"].as_array().expect("a list");
        assert_eq!(methods.len(), expected.len(), "{file}");
        for (row, method) in methods.iter().zip(expected) {
            let number = |value: &Value| format!("{:.2}", value.as_f64().expect("a number"));
            assert_eq!(row[2], method["trainings"].to_string());
            assert_eq!(
                row[3..5],
                [number(&method["mean"]["value"]), number(&method["iqm"]["value"])]
            );
        }
        let differences = section_table(&page, "differences");
        let expected = &compared["differences"].as_array().expect("a list")[0];
        let difference = format!("{:+.2}", expected["iqm"]["value"].as_f64().expect("a number"));
        assert_eq!(differences[0][3], difference, "{file}");
        assert!(page.contains("data-chart=\"by_steps\"") && page.contains("Hypervolume"));
    }
    let page = fs::read_to_string(page).expect("the page is there");
    assert_eq!(section_table(&page, "trainings").len(), 6);
}
