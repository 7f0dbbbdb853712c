//! `--json` says all that the text says: every number of it, under names that are a schema.

use std::collections::BTreeSet;

use insta::assert_snapshot;
use serde_json::Value;

use crate::program::{assert_has, engine_at, folder, json, succeeds, tiny, write};

const RUN: &str = "rounds: 2, n_envs: 2, max_steps: 8, seed: 7";

const SWEEP: &str = r#"(
    name: "pair",
    scenario: "tiny.ron",
    points: [(name: "learned", set: []), (name: "rule", set: [(path: "policy.controller", value: "heuristic")])],
    replicates: 2,
    evaluation: (episodes: 2, seeds: [11], mode: greedy),
    judge: (metric: accuracy),
)"#;

/// Paths of a document, one for all members of a list. Values below names of the scenario's own, and those that depend on how
/// seeds fared, aren't part of it: unit tests of the report hold that to fixed events.
fn schema(value: &Value, at: &str, into: &mut BTreeSet<String>) {
    let is_own = ["origins", "results", "decisions", "blueprints", "best.seeds"]
        .iter()
        .any(|own| at.ends_with(own));
    match value {
        Value::Object(fields) if !is_own => {
            for (name, field) in fields {
                schema(field, format!("{at}.{name}").trim_start_matches('.'), into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| schema(item, &format!("{at}[]"), into)),
        // Not in every build.
        _ if at.ends_with("result.commit") => {}
        _ => _ = into.insert(at.to_owned()),
    }
}

fn schema_of(document: &str) -> String {
    let mut paths = BTreeSet::new();
    schema(&json(document), "", &mut paths);
    paths.into_iter().collect::<Vec<_>>().join("\n")
}

/// All numbers of a document, those in its texts among them, and the lengths of its lists.
fn numbers(value: &Value, into: &mut Vec<f64>) {
    match value {
        Value::Object(fields) => fields.values().for_each(|field| numbers(field, into)),
        Value::Array(items) => {
            into.push(items.len() as f64);
            items.iter().for_each(|item| numbers(item, into));
        }
        Value::Number(number) => into.extend(number.as_f64()),
        Value::String(text) => into.extend(numbers_in(text).iter().filter_map(|word| word.parse::<f64>().ok())),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Numbers as they are written; not those in paths, names and hashes.
fn numbers_in(text: &str) -> Vec<String> {
    let of_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let words = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| "+-±()%x,;:.".contains(c)));
    let words = words.filter(|word| !word.is_empty() && of_number(word));
    words.map(str::to_owned).collect()
}

/// Numbers of a text that a document does not have, as they are, in percent, in thousands or in multiples of 1024.
fn missing(text: &str, document: &str) -> Vec<String> {
    /// The level of intervals, in explanations.
    const LEVEL: &str = "95";
    let mut there = Vec::new();
    numbers(&json(document), &mut there);
    let is_there = |word: &String| {
        let decimals = word.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let scaled = |scale: f64| {
            there
                .iter()
                .any(|number| format!("{:.decimals$}", (number * scale).abs()) == *word)
        };
        let binary = [1.0 / 1024.0, 1.0 / f64::from(1 << 20), 1.0 / f64::from(1 << 30)];
        [1.0, 100.0, 1e-3, 1e-6, 1e-9].into_iter().chain(binary).any(scaled)
    };
    let asked = numbers_in(text).into_iter().filter(|word| word != LEVEL);
    asked.filter(|word| !is_there(word)).collect()
}

#[test]
#[ignore = "long tier"]
fn json_holds_every_number_of_the_text_under_names_that_stay() {
    let folder = folder();
    write(&folder.path().join("tiny.ron"), tiny(RUN));
    write(&folder.path().join("pair.ron"), SWEEP);
    let run = |line: &str| succeeds(&engine_at(folder.path(), line));
    let ended_run = run("run tiny.ron --json --progress none");
    let preview = run("sweep pair.ron --dry-run");
    run("sweep pair.ron -q");

    assert_has(&preview, &["128 env-steps to train\n"]);
    assert_snapshot!("run", schema_of(&ended_run));
    for (name, line) in [
        ("show", "show latest"),
        ("eval", "eval latest --episodes 4 --against wait,heuristic"),
        ("preview", "sweep pair.ron --dry-run"),
        ("sweep", "sweep collect pair"),
        ("status", "sweep status pair"),
        ("compare", "compare pair"),
    ] {
        let (text, json) = (run(line), run(&format!("{line} --json")));
        assert_eq!(missing(&text, &json), Vec::<String>::new(), "{name}:\n{text}");
        assert_snapshot!(name, schema_of(&json));
    }
}
