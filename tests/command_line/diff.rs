//! The place where two runs part is named by round, step, env and field, with what each of them says.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use crate::program::{
    assert_has, copy_of, each, ends_with, engine_at, json, newest, played, read, succeeds, text, write,
};
use crate::support::{assert_same_run, first_difference};

const SCENARIO: &str = r#"(
    task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 2, n_envs: 1, max_steps: 3),
    policy: (controller: "actor_critic"),
)"#;

/// A run in `one`, the same again in `again`, and in `other` one of another seed.
fn runs() -> (tempfile::TempDir, [PathBuf; 3]) {
    const NAMES: [&str; 3] = ["one", "again", "other"];
    static RUNS: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            write(&folder.join("learnt.ron"), SCENARIO);
            for (name, seed) in NAMES.into_iter().zip([42, 42, 43]) {
                let run = format!("run learnt.ron --seed {seed} --out {name} --progress none --threads 1");
                succeeds(&engine_at(folder, &run));
            }
        })
    });
    let folder = copy_of(&RUNS);
    let runs = NAMES.map(|name| newest(&folder.path().join(name)));
    (folder, runs)
}

#[test]
#[ignore = "long tier"]
fn runs_of_one_seed_are_equal_and_those_of_two_part_in_everything() {
    let (folder, _) = runs();
    let diff = |words: &str| engine_at(folder.path(), &format!("diff {words}"));

    let equal = succeeds(&diff("one/latest again/latest"));
    let parted = diff("one/latest other/latest");
    let everywhere = json(&text(&diff("one/latest other/latest --all --json").stdout));
    let learnt = text(&diff("one/latest other/latest --only checkpoints").stdout);

    assert!(equal.starts_with("no difference in scenario ("), "{equal}");
    assert_has(&equal, &["checkpoints (15 files)"]);
    ends_with(1, &parted);
    let first = text(&parted.stdout);
    assert!(first.starts_with("scenario: run.seed\n  42  ("), "{first}");
    let kinds = each(&everywhere["differences"], "kind");
    for kind in ["scenario", "events", "checkpoints"] {
        let count = kinds.iter().filter(|found| **found == kind).count();
        assert!((1..=10).contains(&count), "{kind}: {kinds:?}");
    }
    assert_has(&learnt, &[" ulp apart\n", "checkpoints/round-000000/"]);
}

#[test]
#[ignore = "long tier"]
fn one_value_of_an_event_or_a_tensor_is_named() {
    let (_folder, [one, other, _]) = runs();
    assert_same_run(&one, &other);

    let weights = other.join("checkpoints/round-000002/policy/policy.safetensors");
    let mut bytes = fs::read(&weights).expect("weights");
    // The lowest bit of the last number.
    let last = bytes.len() - 4;
    bytes[last] ^= 1;
    write(&weights, bytes);
    let tensor = first_difference(&one, &other).expect("they differ");
    let events = other.join("events.jsonl");
    write(&events, read(&events).replacen("\"op\":\"", "\"op\":\"UN", 1));
    let event = first_difference(&one, &other).expect("they differ");

    assert_eq!(tensor.ulp, Some(1), "{tensor}");
    assert!(tensor.field.ends_with(']'), "{tensor}");
    assert_eq!(event.field, "data.op");
    let at = (event.at.round, event.at.step, event.at.env);
    assert_eq!(at, (Some(0), Some(1), Some(0)));
}
