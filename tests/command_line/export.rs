//! A grown network leaves its run as plain PyTorch; what cannot be exported is said, and nothing is half written.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use crate::program::{
    assert_has, copy_of, ends_with, engine, engine_at, json, names, newest, played, read, refused, succeeds, text,
    write,
};

/// A folder with a run whose two envs plant a seed each and commit it, and keep all networks.
fn run() -> tempfile::TempDir {
    static RUN: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            let scenario = r#"(
                name: "tiny",
                task: preset("digits_minimal", (batches_per_step: count(2))),
                run: (rounds: 2, n_envs: 2, max_steps: 30, seed: 3, keep: all),
                policy: (controller: "heuristic"),
            )"#;
            write(&folder.join("tiny.ron"), scenario);
            succeeds(&engine_at(folder, "run tiny.ron --progress none"));
        })
    });
    copy_of(&RUN)
}

/// Message on an export that is refused.
fn refusal(folder: &Path, line: &str) -> String {
    refused(&engine_at(folder, &format!("export {line}")))
}

#[test]
fn the_best_network_of_a_run_becomes_a_folder_of_plain_pytorch() {
    let folder = run();
    let to = folder.path().join("grown");

    let exported = json(&succeeds(&engine_at(folder.path(), "export latest -o grown --json")));

    let files = "card.json card.md kept.safetensors network.py network.safetensors";
    assert_eq!(names(&to).join(" "), files);
    let kept = fs::read(exported["from"].as_str().expect("a path")).expect("there");
    assert_eq!(fs::read(to.join("kept.safetensors")).expect("there"), kept);
    let card = json(&read(&to.join("card.json")));
    let measured = &card["measures"]["validation"]["accuracy"];
    assert_eq!(*measured, exported["validation_accuracy"]);
    assert_eq!(card["sizes"]["parameters"], exported["parameters"]);
    let shown = json(&succeeds(&engine_at(folder.path(), "show latest --json")));
    for name in ["round", "env", "parameters", "validation_accuracy"] {
        assert_eq!(shown["networks"]["best"][name], exported[name], "{name}");
    }
    let shown = succeeds(&engine_at(folder.path(), "show latest"));
    assert_has(&shown, &["best network   round"]);
    let source = read(&to.join("network.py"));
    assert_has(&source, &["class Network(nn.Module):"]);
    // Again, of its own file, in the same place.
    succeeds(&engine_at(folder.path(), "export grown/kept.safetensors -o grown"));
    assert_eq!(read(&to.join("network.py")), source);
    assert_eq!(names(folder.path()), ["grown", "runs", "tiny.ron"]);
}

#[test]
fn one_of_the_kept_networks_is_chosen_by_env_and_round() {
    let folder = run();
    let chosen = "export latest -o grown --round 1 --env 1 --json";
    let exported = json(&succeeds(&engine_at(folder.path(), chosen)));
    assert_eq!([&exported["round"], &exported["env"]], [1, 1]);

    let message = refusal(folder.path(), "latest -o grown --round 3");
    let there = "only those of round 1: env 0, 1; round 2: env 0, 1";
    assert_has(&message, &[there]);
    let message = refusal(folder.path(), "grown/kept.safetensors -o grown --env 1");
    assert_has(&message, &["is one network"]);
}

#[test]
fn a_folder_of_something_else_is_left_alone_unless_forced() {
    let folder = run();
    let mine = folder.path().join("mine");
    write(&mine.join("notes.txt"), "keep me");

    for (to, expected) in [
        ("mine", "holds notes.txt"),
        ("mine/notes.txt", "isn't a folder"),
        ("..", "isn't a name for a new folder"),
    ] {
        assert_has(&refusal(folder.path(), &format!("latest -o {to}")), &[expected]);
    }
    assert_eq!(names(&mine), ["notes.txt"]);
    succeeds(&engine_at(folder.path(), "export latest -o mine --force"));
    assert!(!mine.join("notes.txt").exists() && mine.join("network.py").exists());
}

#[test]
fn a_run_that_has_kept_nothing_and_a_damaged_network_are_named() {
    let folder = run();
    let networks = newest(&folder.path().join("runs")).join("networks");
    let kept = networks.join("round2-env0.safetensors");
    let mut bytes = fs::read(&kept).expect("there");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    write(&kept, bytes);
    let of_kept = format!("'{}' -o grown", kept.display());

    let damaged = refusal(folder.path(), &of_kept);
    let checked = engine_at(folder.path(), "check latest");
    write(&kept, "no tensors");
    let unreadable = refusal(folder.path(), &of_kept);
    fs::remove_dir_all(networks).expect("removed");
    let gone = refusal(folder.path(), "latest -o grown");

    assert_has(&damaged, &["is damaged"]);
    ends_with(1, &checked);
    assert_has(&text(&checked.stdout), &["networks/round2-env0.safetensors"]);
    assert_has(
        &unreadable,
        &["isn't a network that this version reads: it isn't a complete safetensors file"],
    );
    assert_has(&gone, &["kept no networks", "run.keep"]);
    assert!(!folder.path().join("grown").exists());
}

#[test]
fn the_policy_of_a_run_becomes_plain_pytorch_and_a_run_without_one_says_so() {
    let folder = run();
    let to = folder.path().join("policy");
    let message = refusal(folder.path(), "latest --policy -o policy");
    assert_has(&message, &["its controller doesn't learn"]);
    assert!(!to.exists());

    let line = format!("export proof/policy --policy -o '{}'", to.display());
    let printed = succeeds(&engine(&line));

    assert_has(&printed, &["the policy after 40 updates"]);
    assert_eq!(names(&to), ["policy.py", "policy.safetensors"]);
    let message = refused(&engine(&format!("{line} --env 1")));
    assert_has(&message, &["--env"]);
}
