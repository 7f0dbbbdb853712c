//! A trained network gets domains for other images, beside what else would make it read them, and stays inside as it was.

use std::path::Path;
use std::process::Output;

use simic_engine::extend::GrownNetwork;

use crate::grow::write_weights;
use crate::program::{assert_has, each, engine_at, folder, json, names, read, refused, succeeds, write};
use crate::report::section_table;

/// Few short trainings on few of the embedded digits.
fn adapt(place: &Path, more: &str) -> Output {
    let short = "--rates 0.05 --seed 3 --set run.max_steps=2 --set task.batches_per_step=count(2)";
    let few = "--set task.split=(seed:0,val_permille:100,test_permille:800)";
    engine_at(place, &format!("adapt {short} {few} {more}"))
}

/// Writes a scenario with this task.
fn write_scenario(file: &Path, task: &str) {
    let run = "run: (rounds: 1, n_envs: 1, max_steps: 2)";
    let scenario = format!(r#"(task: {task}, {run}, policy: (controller: "wait"), lifecycle: (slots: ["r0c0"]))"#);
    write(file, scenario);
}

const DIGITS: &str = r#"preset("digits_baseline", (batches_per_step: count(2)))"#;

#[test]
fn a_network_gets_one_domain_after_the_other_and_stays_inside_bit_for_bit() {
    let place = folder();
    let at = |name: &str| place.path().join(name);
    write_scenario(&at("digits.ron"), DIGITS);
    succeeds(&engine_at(place.path(), "run digits.ron --id first --progress none"));
    let given = "runs/first/networks/round1-env0.safetensors";

    let line = format!("--scenario digits.ron --weights {given} -o adapted");
    let printed = succeeds(&adapt(place.path(), &line));

    assert_has(&printed, &["domain `digits` beside the given network"]);
    let files = "adapt.json card.json card.md kept.safetensors network.py network.safetensors report.html";
    assert_eq!(names(&at("adapted")).join(" "), files);
    let table = json(&read(&at("adapted/adapt.json")));
    let rows = table["rows"].as_array().expect("rows");
    // What keeps the given network comes first, and of that what adds least.
    assert!(
        rows.is_sorted_by_key(|row| (row["keeps"] != true, row["added"].as_u64())),
        "{table}"
    );
    assert_eq!((&rows[0]["name"], &rows[0]["added"]), (&"as given".into(), &0.into()));
    assert_eq!(rows.last().expect("rows")["name"], "fine-tuned");
    let shown = section_table(&read(&at("adapted/report.html")), "better");
    let shown: Vec<&str> = shown.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(each(&table["rows"], "name"), shown);
    assert_has(
        &read(&at("adapted/card.md")),
        &[table["why"].as_str().expect("a sentence")],
    );

    let again = "--scenario digits.ron --weights adapted --budget 0.01x -o both --domain";
    let taken = refused(&adapt(place.path(), &format!("{again} digits")));
    assert_has(&taken, &["domain \"digits\"", "has one of this name"]);
    succeeds(&adapt(place.path(), &format!("{again} night")));

    let table = json(&read(&at("both/adapt.json")));
    let rows = table["rows"].as_array().expect("rows");
    let written = rows.iter().find(|row| row["name"] == table["written"]).expect("a row");
    assert!(written["added_share"].as_f64() <= Some(0.01), "{written}");
    let networks = [given, "adapted/kept.safetensors", "both/kept.safetensors"];
    let [given, adapted, both] = networks.map(|file| GrownNetwork::load(&at(file)).expect("a network"));
    assert!(given.parameters == adapted.parameters && given.parameters == both.parameters);
    assert_eq!(both.domains.keys().collect::<Vec<_>>(), ["digits", "night"]);
    assert!(both.domains["digits"] == adapted.domains["digits"]);
}

#[test]
fn texts_and_networks_that_are_not_whole_are_refused_before_anything_is_played() {
    let place = folder();
    let at = |name: &str| place.path().join(name);
    let said = |more: &str| refused(&adapt(place.path(), &format!("{more} -o adapted")));
    write_scenario(&at("digits.ron"), DIGITS);
    let task = r#"preset("synth_tokens", (batch_size: 8, batches_per_step: count(1), val_batch_size: 16,
        data: synth_tokens((block: 16, train: 40, val: 24, test: 8)), host: transformer((width: 16, layers: 2, block: 16))))"#;
    write_scenario(&at("text.ron"), task);
    succeeds(&engine_at(place.path(), "run text.ron --id text --progress none"));
    write_weights(place.path(), 10, "stage1");
    let host = "--host 'resnet((in_channels: 1, base_channels: 4, blocks: [1, 1], stem: large, input_hw: 8))'";

    let text = said("--scenario text.ron --weights runs/text/networks/round1-env0.safetensors");
    assert_has(&text, &["only networks that read images are adapted"]);
    let part = format!("--scenario digits.ron --weights w.safetensors --normalise 0..1 {host}");
    assert_has(&said(&part), &["nothing for stage1.block0.first.conv.weight"]);
    assert_has(&said("--scenario digits.ron"), &["--weights"]);
    assert_has(&said(&format!("{part} --budget 2")), &["a number above 0 and an x"]);
    assert!(!at("adapted").exists());
}
