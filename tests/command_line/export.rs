//! A grown network leaves its run as plain PyTorch; what cannot be exported is said, and nothing is half written.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{engine, newest, refused, repository, succeeds, text};

/// A run whose two envs plant a seed each and commit it, and keep all networks.
fn play(out: &Path) {
    let scenario = out.join("tiny.ron");
    let text = r#"(
        name: "tiny",
        task: preset("digits_minimal", (batches_per_step: count(2))),
        run: (rounds: 2, n_envs: 2, max_steps: 30, seed: 3, keep: all),
        policy: (controller: "heuristic"),
    )"#;
    fs::write(&scenario, text).expect("written");
    let [scenario, out] = [&scenario, out].map(|path| path.to_str().expect("text"));
    succeeds(&engine(&["run", scenario, "--out", out, "--progress", "none"]));
}

/// `simic-engine export` of the newest run in `out`.
fn export(out: &Path, more: &[&str]) -> std::process::Output {
    let mut arguments = vec!["export", "latest", "--out", out.to_str().expect("text")];
    arguments.extend(more);
    engine(&arguments)
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn the_best_network_of_a_run_becomes_a_folder_of_plain_pytorch() {
    let out = tempfile::tempdir().expect("a folder");
    play(out.path());
    let to = out.path().join("grown");
    let folder = to.to_str().expect("text");

    let printed = succeeds(&export(out.path(), &["-o", folder, "--json"]));

    let exported: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(
        names_in(&to),
        [
            "card.json",
            "card.md",
            "kept.safetensors",
            "network.py",
            "network.safetensors"
        ]
    );
    let kept = fs::read(exported["from"].as_str().expect("a path")).expect("there");
    assert_eq!(fs::read(to.join("kept.safetensors")).expect("there"), kept);
    let card: Value = serde_json::from_slice(&fs::read(to.join("card.json")).expect("there")).expect("JSON");
    assert_eq!(
        card["measures"]["validation"]["accuracy"],
        exported["validation_accuracy"]
    );
    assert_eq!(card["sizes"]["parameters"], exported["parameters"]);
    let runs = out.path().to_str().expect("text");
    let shown = succeeds(&engine(&["show", "latest", "--out", runs, "--json"]));
    let best = &serde_json::from_str::<Value>(&shown).expect("JSON")["networks"]["best"];
    for name in ["round", "env", "parameters", "validation_accuracy"] {
        assert_eq!(best[name], exported[name], "{name}");
    }
    let shown = succeeds(&engine(&["show", "latest", "--out", runs]));
    assert!(shown.contains("best network   round"), "{shown}");
    let source = fs::read_to_string(to.join("network.py")).expect("there");
    assert!(source.contains("class Network(nn.Module):"), "{source}");
    // Again, of its own file, in the same place.
    let again = engine(&["export", &format!("{folder}/kept.safetensors"), "-o", folder]);
    succeeds(&again);
    assert_eq!(fs::read_to_string(to.join("network.py")).expect("there"), source);
    assert_eq!(
        names_in(out.path())
            .iter()
            .filter(|name| name.contains("grown"))
            .count(),
        1
    );
}

#[test]
fn one_of_the_kept_networks_is_chosen_by_env_and_round() {
    let out = tempfile::tempdir().expect("a folder");
    play(out.path());
    let to = out.path().join("grown");
    let to = to.to_str().expect("text");
    let printed = succeeds(&export(out.path(), &["-o", to, "--round", "1", "--env", "1", "--json"]));
    let exported: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(
        (&exported["round"], &exported["env"]),
        (&Value::from(1), &Value::from(1))
    );

    let message = refused(&export(out.path(), &["-o", to, "--round", "3"]));
    assert!(
        message.contains("it has those of round 1: env 0, 1; round 2: env 0, 1"),
        "{message}"
    );
    let kept = newest(out.path()).join("networks/round1-env1.safetensors");
    let message = refused(&engine(&[
        "export",
        kept.to_str().expect("text"),
        "-o",
        to,
        "--env",
        "1",
    ]));
    assert!(message.contains("is one network"), "{message}");
}

#[test]
fn a_folder_of_something_else_is_left_alone_unless_forced() {
    let out = tempfile::tempdir().expect("a folder");
    play(out.path());
    let to = out.path().join("mine");
    fs::create_dir(&to).expect("a folder");
    fs::write(to.join("notes.txt"), "keep me").expect("written");
    let folder = to.to_str().expect("text");

    let message = refused(&export(out.path(), &["-o", folder]));

    assert!(message.contains("holds notes.txt"), "{message}");
    assert_eq!(names_in(&to), ["notes.txt"]);
    let file = to.join("notes.txt");
    let message = refused(&export(out.path(), &["-o", file.to_str().expect("text")]));
    assert!(message.contains("is not a folder"), "{message}");
    let message = refused(&export(out.path(), &["-o", ".."]));
    assert!(message.contains("names no folder"), "{message}");
    succeeds(&export(out.path(), &["-o", folder, "--force"]));
    assert!(!file.exists() && to.join("network.py").exists());
}

#[test]
fn a_run_that_has_kept_nothing_and_a_damaged_network_are_named() {
    let out = tempfile::tempdir().expect("a folder");
    play(out.path());
    let run = newest(out.path());
    let to = out.path().join("grown");
    let folder = to.to_str().expect("text");
    let kept = run.join("networks/round2-env0.safetensors");
    let mut bytes = fs::read(&kept).expect("there");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&kept, bytes).expect("written");

    let message = refused(&engine(&["export", kept.to_str().expect("text"), "-o", folder]));
    assert!(message.contains("is damaged"), "{message}");
    let checked = engine(&["check", run.to_str().expect("text")]);
    let printed = text(&checked.stdout);
    assert_eq!(checked.status.code(), Some(1), "{printed}");
    assert!(printed.contains("networks/round2-env0.safetensors"), "{printed}");
    fs::write(&kept, "no tensors").expect("written");
    let message = refused(&engine(&["export", kept.to_str().expect("text"), "-o", folder]));
    assert!(message.contains("is no network that this version reads"), "{message}");
    fs::remove_dir_all(run.join("networks")).expect("removed");
    let message = refused(&export(out.path(), &["-o", folder]));
    assert!(
        message.contains("has kept no network") && message.contains("run.keep"),
        "{message}"
    );
    assert!(!to.exists());
}

#[test]
fn the_policy_of_a_run_becomes_plain_pytorch_and_a_run_without_one_says_so() {
    let out = tempfile::tempdir().expect("a folder");
    let to = out.path().join("policy");
    let folder = to.to_str().expect("text");
    play(out.path());
    let message = refused(&export(out.path(), &["--policy", "-o", folder]));
    assert!(message.contains("its controller does not learn"), "{message}");
    assert!(!to.exists());
    let saved = repository().join("proof/policy");
    let saved = saved.to_str().expect("text");

    let printed = succeeds(&engine(&["export", saved, "--policy", "-o", folder]));

    assert!(printed.contains("the policy after 40 updates"), "{printed}");
    assert_eq!(names_in(&to), ["policy.py", "policy.safetensors"]);
    let message = refused(&engine(&["export", saved, "--policy", "--env", "1", "-o", folder]));
    assert!(message.contains("--env"), "{message}");
}
