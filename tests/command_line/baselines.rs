//! Baselines made from recorded runs: the same decisions again, and the final topology without its growth.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::program::{call, ended, newest, refused, reproducible_events, succeeds, text};

/// Rounds, envs and steps of the recorded runs.
const LENGTH: [&str; 6] = ["--rounds", "2", "--envs", "2", "--steps", "22"];

fn start(out: &Path, length: &[&str], set: &[&str]) -> Output {
    let mut call = call(&["run", "scenarios/quickstart.ron", "--progress", "none"]);
    call.args(length)
        .args([
            "--set",
            "task.batches_per_step=count(2)",
            "--set",
            "policy.masks.action_space.allowed_ops=None",
        ])
        .args(set.iter().flat_map(|set| ["--set", set]))
        .arg("--out")
        .arg(out);
    ended(&mut call)
}

/// Plays a run to its end and returns its folder.
fn play(out: &Path, set: &[&str]) -> PathBuf {
    succeeds(&start(out, &LENGTH, set));
    newest(out)
}

/// What is said of a run that cannot start.
fn refusal(out: &Path, length: &[&str], set: &[&str]) -> String {
    let message = refused(&start(out, length, set));
    assert!(!out.exists(), "a run that cannot start leaves nothing behind");
    message
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// `policy.replay.run` or another path in quotes.
fn quoted(field: &str, path: &Path) -> String {
    format!("{field}=\"{}\"", path.display())
}

const EAGER: [&str; 3] = [
    "lifecycle.gates.min_training_steps=1",
    "lifecycle.gates.min_gradient_health=0.0",
    "policy.controller=random",
];

#[test]
fn a_replay_is_the_recorded_run_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let original = play(&folder.path().join("original"), &EAGER);

    let mut set = EAGER;
    let source = quoted("policy.replay.run", &original);
    set[2] = "policy.controller=replay";
    let replayed = play(&folder.path().join("replayed"), &[&set[..], &[&source]].concat());

    let (original, replayed) = (reproducible_events(&original), reproducible_events(&replayed));
    for kind in [
        "env_step",
        "seed_germinated",
        "seed_stage_changed",
        "seed_pruned",
        "episode_finished",
    ] {
        assert_eq!(of_kind(&original, kind), of_kind(&replayed, kind), "{kind}");
    }
    // The comparison means something: there was much to be repeated.
    assert_eq!(of_kind(&original, "env_step").len(), 2 * 2 * 22);
    assert!(of_kind(&original, "seed_germinated").len() > 4);
    assert!(of_kind(&original, "seed_pruned").len() > 1);
    let reasons = |events: &[Value]| -> Vec<Value> {
        let decisions = of_kind(events, "decision");
        decisions.iter().map(|event| event["data"]["reason"].clone()).collect()
    };
    assert!(reasons(&replayed).iter().all(|reason| reason == "replayed"));
}

#[test]
fn a_run_that_cannot_be_replayed_is_refused_with_every_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("refused");
    let original = play(&folder.path().join("original"), &["policy.controller=random"]);
    let replay = ["policy.controller=replay", &quoted("policy.replay.run", &original)];

    let longer = ["--rounds", "3", "--envs", "4", "--steps", "30"];
    let message = refusal(&out, &longer, &replay);
    assert!(message.contains("it had 2 envs, 4 are to be played"), "{message}");
    assert!(
        message.contains("its episodes had 22 steps, 30 are to be played"),
        "{message}"
    );
    assert!(
        message.contains("it completed 2 rounds, 3 are to be played"),
        "{message}"
    );

    let narrower = [&replay[..], &["lifecycle.slots=[\"r0c1\"]"]].concat();
    let message = refusal(&out, &LENGTH, &narrower);
    assert!(message.contains("slot `r0c0` is not enabled"), "{message}");

    let message = refusal(&out, &LENGTH, &replay[..1]);
    assert!(message.contains("policy.replay.run"), "{message}");

    let gone = ["policy.controller=replay", "policy.replay.run=\"gone\""];
    let message = refusal(&out, &LENGTH, &gone);
    assert!(message.contains("there is no run"), "{message}");

    let quiet = ["policy.controller=random", "telemetry.level=lifecycle"];
    let quiet = play(&folder.path().join("quiet"), &quiet);
    let message = refusal(
        &out,
        &LENGTH,
        &["policy.controller=replay", &quoted("policy.replay.run", &quiet)],
    );
    assert!(message.contains("it recorded no decisions"), "{message}");

    let thinned = ["policy.controller=random", "telemetry.step_stride=2"];
    let thinned = play(&folder.path().join("thinned"), &thinned);
    let message = refusal(
        &out,
        &LENGTH,
        &["policy.controller=replay", &quoted("policy.replay.run", &thinned)],
    );
    assert!(
        message.contains("no decision of env 0 in step 2 of round 1 is recorded"),
        "{message}"
    );
}

#[test]
fn a_recorded_command_that_is_illegal_now_ends_the_run_or_becomes_a_wait() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let original = play(&folder.path().join("original"), &EAGER);
    let replay = [
        "policy.controller=replay",
        &quoted("policy.replay.run", &original),
        "lifecycle.max_seeds=1",
        "lifecycle.min_prune_age=20",
    ];

    let output = start(&folder.path().join("strict"), &LENGTH, &replay);
    assert_eq!(output.status.code(), Some(3));
    let message = text(&output.stderr);
    assert!(message.contains("the replay orders"), "{message}");

    let lenient = [&replay[..], &["policy.replay.wait_on_illegal=true"]].concat();
    let output = start(&folder.path().join("lenient"), &LENGTH, &lenient);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let warnings = text(&output.stderr).matches("waits instead").count();
    assert_eq!(warnings, 1, "told once");
}

/// Grows one seed and commits it at step 18.
const GROWN: [&str; 4] = [
    "preset=manual",
    "policy.controller=schedule",
    "policy.schedule.builtin=grow_one_seed",
    "policy.schedule.wait_on_illegal=true",
];

#[test]
fn a_static_topology_stands_before_the_first_step_and_stays() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let seeds = "initial_topology=seeds([(slot: \"r0c2\", blueprint: \"norm\"), (slot: \"r0c0\", blueprint: \"conv_small\", style: \"gated_gate\")])";

    let run = play(&folder.path().join("listed"), &["policy.controller=static", seeds]);

    let events = reproducible_events(&run);
    let steps = of_kind(&events, "env_step");
    assert_eq!(steps.len(), 2 * 2 * 22);
    for step in &steps {
        let seeds = step["data"]["seeds"].as_array().expect("seeds");
        let slots: Vec<_> = seeds.iter().map(|seed| &seed["slot"]).collect();
        assert_eq!(slots, ["r0c0", "r0c2"]);
        let stands = |seed: &Value| seed["stage"] == "COMMITTED" && seed.get("alpha").is_none();
        assert!(seeds.iter().all(stands), "{seeds:?}");
    }
    let planted = of_kind(&events, "seed_committed");
    assert_eq!(planted.len(), 2 * 2 * 2);
    for event in &planted {
        let is_first = event["slot"] == "r0c0";
        assert_eq!(event["data"]["blueprint"], if is_first { "conv_small" } else { "norm" });
    }
    assert!(planted.iter().all(|event| event["step"] == 0));
    // Fresh weights for every episode and slot.
    let streams: std::collections::BTreeSet<_> = of_kind(&events, "seed_germinated")
        .iter()
        .map(|event| event["data"]["rng_seed"].to_string())
        .collect();
    assert_eq!(streams.len(), 2 * 2 * 2);
    assert!(
        of_kind(&events, "decision")
            .iter()
            .all(|event| event["data"]["op"] == "WAIT")
    );
    // The host that never grew never grew.
    assert_eq!(of_kind(&events, "baseline_measured").len(), 1);
}

#[test]
fn a_schedule_is_known_by_the_hash_of_its_orders() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let told = reproducible_events(&play(&folder.path().join("grown"), &GROWN));

    assert_eq!(of_kind(&told, "seed_committed").len(), 4, "one seed an episode");
    let hash = &of_kind(&told, "run_started")[0]["data"]["controller_hash"];
    assert_eq!(hash, "ec5bbce4686177b486454a3a87b43a45c0724e790028ea66eda9c2078f838f3c");
}

#[test]
fn a_topology_that_is_none_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("refused");
    let message = refusal(&out, &LENGTH, &["policy.controller=static"]);
    assert!(message.contains("a static topology needs one"), "{message}");

    let twice =
        "initial_topology=seeds([(slot: \"r0c0\", blueprint: \"norm\"), (slot: \"r0c0\", blueprint: \"norm\")])";
    let message = refusal(&out, &LENGTH, &["policy.controller=static", twice]);
    assert!(message.contains("slot r0c0 is listed twice"), "{message}");
}
