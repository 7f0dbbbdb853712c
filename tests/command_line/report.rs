//! `report`: the page of a run, from its record alone.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;

use crate::program::{
    assert_has, copy_of, ends_with, engine_at, folder, json, newest, played, read, refused, succeeds, tiny, write,
};

const RUN: &str = "rounds: 3, n_envs: 2, max_steps: 8, seed: 7, keep: best";

/// A folder with a run that has a hostile tag.
fn played_run() -> tempfile::TempDir {
    static RUNS: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            write(&folder.join("tiny.ron"), tiny(RUN));
            let tag = "</script><script>alert(1)</script>";
            succeeds(&engine_at(folder, &format!("run tiny.ron --progress none --tag {tag}")));
        })
    });
    copy_of(&RUNS)
}

/// The page of the newest run, and what was said when it was written.
fn report(folder: &Path) -> (String, String) {
    let output = engine_at(folder, "report latest -o report.html");
    let page = folder.join("report.html");
    assert_eq!(succeeds(&output), format!("written to {}\n", page.display()));
    (read(&page), ends_with(0, &output))
}

/// The cells of the first table after a mark, row by row.
fn table_after(page: &str, mark: &str) -> Vec<Vec<String>> {
    let (_, rest) = page.split_once(mark).expect("the mark is there");
    let (_, table) = rest.split_once("<tbody>").expect("a table");
    let (table, _) = table.split_once("</tbody>").expect("its end");
    let cells = |row: &str| {
        let cells = row.split("<td").skip(1);
        let text = |cell: &str| Some(cell.split_once('>')?.1.split('<').next()?.to_owned());
        cells.filter_map(text).collect()
    };
    table.split("<tr>").skip(1).map(cells).collect()
}

/// Those of the first table of a section.
pub fn section_table(page: &str, id: &str) -> Vec<Vec<String>> {
    table_after(page, &format!("<section id=\"{id}\""))
}

#[test]
fn the_page_of_a_run_has_its_numbers_and_asks_nothing_of_a_network() {
    let folder = played_run();

    let (page, said) = report(folder.path());

    assert_eq!(said, "");
    let shown = json(&succeeds(&engine_at(folder.path(), "show latest --json")));
    let rounds = shown["results"]["rounds"].as_array().expect("a list");
    let table = table_after(&page, "data-chart=\"accuracy\"");
    assert_eq!(table.len(), 3);
    for (row, round) in table.iter().zip(rounds) {
        for (cell, name) in [(&row[2], "accuracy_mean"), (&row[3], "accuracy_best")] {
            let shown: f64 = cell.parse().expect("a number");
            let distance = (shown - round[name].as_f64().expect("a number")).abs();
            assert!(distance < 1e-3, "{name}: {cell} {round}");
        }
    }
    for load in ["src=\"", "href=\"http", "url(", "@import", "<script>alert"] {
        assert!(!page.contains(load), "the page loads something: {load}");
    }
    assert!(page.contains("What is the grown network?"));
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
}

#[test]
fn a_record_that_cannot_be_read_to_its_end_is_reported_and_shown_as_far_as_it_goes() {
    let folder = played_run();
    let events = newest(&folder.path().join("runs")).join("events.jsonl");
    let whole = read(&events);

    write(&events, format!("{whole}{{\"seq\":99"));
    let (page, said) = report(folder.path());
    assert_eq!(said, "", "half a line is one that is being written");
    assert!(page.contains("3 of 3 rounds"));

    write(&events, format!("{whole}{{\"seq\":99}}\n"));
    let (page, said) = report(folder.path());
    assert_has(&said, &["events.jsonl:", "the report covers the events before it\n"]);
    assert!(page.contains("class=\"problem\"") && page.contains("3 of 3 rounds"));

    write(&events, whole.replacen("\"schema\":1", "\"schema\":9", 1));
    let (page, said) = report(folder.path());
    assert_has(&said, &["written with telemetry schema 9"]);
    assert!(page.contains("No episode has ended yet."));

    fs::remove_file(&events).expect("it was there");
    let (page, _) = report(folder.path());
    assert!(page.contains("it has not begun"));
}

#[test]
fn what_cannot_be_served_or_named_is_refused_in_a_sentence() {
    let folder = folder();

    for (line, expected) in [
        ("report -o report.html", "name a run, or give --http for the list"),
        ("report --http 0.0.0.0:7860", "is open to other machines"),
        ("report nothing -o report.html", "nothing"),
    ] {
        assert_has(&refused(&engine_at(folder.path(), line)), &[expected]);
    }
    assert!(!folder.path().join("report.html").exists());
}

const SWEEP: &str = r#"(
    name: "pair",
    scenario: "tiny.ron",
    points: [(name: "learned", set: []), (name: "rule", set: [(path: "policy.controller", value: "heuristic")])],
    replicates: 3,
)"#;

/// A folder with a sweep of three trainings of a policy and three runs by rules.
pub fn played_pair() -> tempfile::TempDir {
    static PAIR: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            write(&folder.join("tiny.ron"), tiny(RUN).replace("rounds: 3", "rounds: 2"));
            write(&folder.join("pair.ron"), SWEEP);
            succeeds(&engine_at(folder, "sweep pair.ron -q"));
        })
    });
    copy_of(&PAIR)
}

#[test]
#[ignore = "long tier"]
fn the_page_of_a_sweep_has_the_numbers_of_compare() {
    let folder = played_pair();
    let run = |line: &str| succeeds(&engine_at(folder.path(), line));

    let page = folder.path().join("sweep.html");
    let said = run("report pair -o sweep.html");
    assert_eq!(said, format!("written to {}\n", page.display()));
    let compared = json(&run("compare pair --report pair.html --json"));

    let number = |value: &Value| format!("{:.2}", value.as_f64().expect("a number"));
    for file in ["sweep.html", "pair.html"] {
        let page = read(&folder.path().join(file));
        let methods = compared["methods"].as_array().expect("a list").iter();
        let methods: Vec<_> = methods
            .map(|method| {
                let values = [&method["mean"]["value"], &method["iqm"]["value"]].map(number);
                (method["trainings"].to_string(), values.to_vec())
            })
            .collect();
        let shown = section_table(&page, "methods").into_iter();
        let shown = shown.map(|row| (row[1].clone(), row[2..4].to_vec()));
        assert_eq!(shown.collect::<Vec<_>>(), methods, "{file}");
        let difference = compared["differences"][0]["iqm"]["value"].as_f64().expect("a number");
        let shown = &section_table(&page, "differences")[0][1];
        assert_eq!(*shown, format!("{difference:+.2}"), "{file}");
        assert!(page.contains("data-chart=\"by_steps\"") && !page.contains("Hypervolume"));
    }
    assert_eq!(section_table(&read(&page), "trainings").len(), 6);
}
