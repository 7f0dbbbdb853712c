//! A trained network gets domains for other images, next to its alternatives, and stays inside unchanged.

use std::path::Path;
use std::process::Output;

use simic_engine::extend::GrownNetwork;

use crate::program::{assert_has, engine_at, folder, json, names, read, refused, succeeds, write};

/// Few short trainings on few of the embedded digits.
fn adapt(place: &Path, more: &str) -> Output {
    let short = "--rates 0.05 --seed 3 --set run.max_steps=2 --set task.batches_per_step=count(2)";
    let few = "--set task.split=(seed:0,val_permille:100,test_permille:800)";
    engine_at(place, &format!("adapt {short} {few} {more}"))
}

#[test]
fn a_network_gets_one_domain_after_the_other_and_stays_inside_bit_for_bit() {
    let place = folder();
    let at = |name: &str| place.path().join(name);
    let scenario = r#"(task: preset("digits_baseline", (batches_per_step: count(2), slots: ["r0c0"])),
        run: (rounds: 1, n_envs: 1, max_steps: 2), policy: (controller: "wait"))"#;
    write(&at("digits.ron"), scenario);
    succeeds(&engine_at(place.path(), "run digits.ron --id first --progress none"));
    let given = "runs/first/networks/round1-env0.safetensors";

    let line = format!("--scenario digits.ron --weights {given} -o adapted");
    let printed = succeeds(&adapt(place.path(), &line));

    assert_has(&printed, &["adapted contains the given network, unchanged"]);
    let files = "adapt.json card.json card.md certificate.safetensors kept.safetensors network.py network.safetensors \
                 report.html";
    assert_eq!(names(&at("adapted")).join(" "), files);
    let table = json(&read(&at("adapted/adapt.json")));
    let rows = table["rows"].as_array().expect("rows");
    // What keeps the given network comes first, and of that what adds least.
    let added = rows.iter().map(|row| (row["keeps"] != true, row["added"].as_u64()));
    assert!(added.is_sorted(), "{table}");
    assert_eq!((&rows[0]["name"], &rows[0]["added"]), (&"as given".into(), &0.into()));
    let why = table["why"].as_str().expect("a sentence");
    assert_has(&read(&at("adapted/card.md")), &[why]);

    let again = "--scenario digits.ron --weights adapted --budget 0.01x -o both --domain";
    let taken = refused(&adapt(place.path(), &format!("{again} digits")));
    assert_has(&taken, &["domain \"digits\"", "has one of this name"]);
    let refusal = |more: &str| refused(&adapt(place.path(), &format!("{again} night {more}")));
    assert_has(&refusal("--normalise 0..1"), &["leave out --normalise"]);
    assert_has(&refusal("--set task.freeze=None"), &["task.freeze can't be set"]);
    succeeds(&adapt(place.path(), &format!("{again} night")));

    let table = json(&read(&at("both/adapt.json")));
    let rows = table["rows"].as_array().expect("rows");
    let written = rows.iter().find(|row| row["name"] == table["written"]).expect("a row");
    assert!(written["added_share"].as_f64() <= Some(0.01), "{written}");
    let networks = [given, "adapted/kept.safetensors", "both/kept.safetensors"];
    let [given, adapted, both] = networks.map(|file| GrownNetwork::load(&at(file)).expect("a network"));
    let growth = &adapted.domains["digits"].growth;
    assert!(growth.iter().all(|seed| seed.measures.is_none()));
    assert!(given.parameters == adapted.parameters && given.parameters == both.parameters);
    assert_eq!(both.domains.keys().collect::<Vec<_>>(), ["digits", "night"]);
    assert!(both.domains["digits"] == adapted.domains["digits"]);
}
