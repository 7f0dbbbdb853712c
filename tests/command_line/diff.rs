//! Where two runs part is named by round, step, env and field, with what each of them says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::program::{call, ended, newest, refused, succeeds, text};
use crate::support::{assert_same_run, first_difference};

fn play(folder: &Path, name: &str, set: &[&str]) -> PathBuf {
    let scenario = folder.join("learnt.ron");
    let learnt = r#"(
        name: "learnt",
        task: preset("digits_minimal", (batches_per_step: count(1))),
        run: (rounds: 2, n_envs: 1, max_steps: 3),
        policy: (controller: "actor_critic", preset: "lstm_small"),
    )"#;
    fs::write(&scenario, learnt).expect("a scenario");
    let out = folder.join(name);
    let mut call = call(&["run", "--progress", "none", "--threads", "1"]);
    call.arg(&scenario).arg("--out").arg(&out);
    succeeds(&ended(call.args(set.iter().flat_map(|set| ["--set", set]))));
    newest(&out)
}

fn diff(one: &Path, other: &Path, more: &[&str]) -> Output {
    ended(call(&["diff"]).arg(one).arg(other).args(more))
}

#[test]
fn runs_of_one_seed_are_equal_and_those_of_two_part_in_everything() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let one = play(folder.path(), "one", &[]);
    let again = play(folder.path(), "again", &[]);
    let other = play(folder.path(), "other", &["run.seed=43"]);

    let equal = succeeds(&diff(&one, &again, &[]));
    let parted = diff(&one, &other, &[]);
    let everywhere = diff(&one, &other, &["--all", "--json"]);
    let learnt = diff(&one, &other, &["--only", "checkpoints"]);

    assert!(equal.starts_with("no difference in scenario ("), "{equal}");
    assert!(equal.contains("checkpoints (15 files)"), "{equal}");
    let first = text(&parted.stdout);
    assert!(first.starts_with("scenario: run.seed\n  42  ("), "{first}");
    assert_eq!(parted.status.code(), Some(1));
    let all: Value = serde_json::from_str(&text(&everywhere.stdout)).expect("JSON");
    let kinds: Vec<&str> = all["differences"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|difference| difference["kind"].as_str())
        .collect();
    for kind in ["scenario", "events", "checkpoints"] {
        assert!(kinds.iter().filter(|found| **found == kind).count() <= 10);
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let learnt = text(&learnt.stdout);
    assert!(learnt.contains(" ulp apart\n"), "{learnt}");
    assert!(learnt.contains("checkpoints/round-000000/"), "{learnt}");
}

#[test]
fn one_value_of_an_event_or_a_tensor_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let one = play(folder.path(), "one", &[]);
    let other = play(folder.path(), "other", &[]);
    assert_same_run(&one, &other);

    let weights = other.join("checkpoints/round-000002/policy/policy.safetensors");
    let mut bytes = fs::read(&weights).expect("weights");
    // The lowest bit of the last number.
    let last = bytes.len() - 4;
    bytes[last] ^= 1;
    fs::write(&weights, bytes).expect("written");
    let tensor = first_difference(&one, &other).expect("they differ");
    let events = other.join("events.jsonl");
    let told = fs::read_to_string(&events).expect("events");
    fs::write(&events, told.replacen("\"op\":\"", "\"op\":\"UN", 1)).expect("written");
    let event = first_difference(&one, &other).expect("they differ");

    assert_eq!(tensor.ulp, Some(1), "{tensor}");
    assert!(tensor.field.ends_with(']'), "{tensor}");
    assert_eq!(event.field, "data.op");
    assert_eq!(
        (event.at.round, event.at.step, event.at.env),
        (Some(0), Some(1), Some(0))
    );
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let message = refused(&diff(folder.path(), folder.path(), &[]));

    assert!(
        message.contains("is no run directory: it has no resolved.ron"),
        "{message}"
    );
}
