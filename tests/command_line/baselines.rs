//! Baselines made from recorded runs: the same decisions again, and the final topology without its growth.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;

use serde_json::Value;

use crate::program::{
    assert_has, copy_of, ends_with, engine_at, events, folder, newest, played, refused, reproducible_events, succeeds,
};

/// Rounds, envs and steps of the recorded runs.
const LENGTH: &str = "--rounds 2 --envs 2 --steps 22";

/// Begins a run that is recorded in `out`, a place in the folder.
fn start(folder: &Path, out: &str, more: &str) -> Output {
    let run = "run scenarios/quickstart.ron --progress none --set task.batches_per_step=count(2)";
    let set = "--set policy.masks.action_space.allowed_ops=None";
    engine_at(folder, &format!("{run} {set} --out {out} {more}"))
}

/// Plays a run to its end and returns its folder.
fn play(folder: &Path, out: &str, set: &str) -> PathBuf {
    succeeds(&start(folder, out, &format!("{LENGTH} {set}")));
    newest(&folder.join(out))
}

/// Asserts that a run can't start, for these reasons.
fn assert_refused(folder: &Path, more: &str, reasons: &[&str]) {
    assert_has(&refused(&start(folder, "refused", more)), reasons);
    let is_left = folder.join("refused").exists();
    assert!(!is_left, "a run that cannot start leaves nothing");
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

const EAGER: &str = "--set lifecycle.gates.min_training_steps=1 --set lifecycle.gates.min_gradient_health=0.0";

/// A run of random decisions, by which many seeds grow.
fn original() -> (tempfile::TempDir, PathBuf) {
    static ORIGINAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            play(folder, "original", &format!("{EAGER} --set policy.controller=random"));
        })
    });
    let folder = copy_of(&ORIGINAL);
    let run = newest(&folder.path().join("original"));
    (folder, run)
}

fn replay(run: &Path) -> String {
    let run = run.display();
    format!(r#"--set policy.controller=replay --set 'policy.replay.run="{run}"'"#)
}

#[test]
#[ignore = "long tier"]
fn a_replay_is_the_recorded_run_again() {
    let (folder, original) = original();

    let replayed = play(folder.path(), "replayed", &format!("{EAGER} {}", replay(&original)));

    let [original, replayed] = [original, replayed].map(|run| reproducible_events(&run));
    let of_seeds = ["seed_germinated", "seed_stage_changed", "seed_pruned"];
    for kind in of_seeds.into_iter().chain(["env_step", "episode_finished"]) {
        assert_eq!(of_kind(&original, kind), of_kind(&replayed, kind), "{kind}");
    }
    // The comparison means something: there was much to be repeated.
    assert_eq!(of_kind(&original, "env_step").len(), 2 * 2 * 22);
    assert!(of_kind(&original, "seed_germinated").len() > 4);
    assert!(of_kind(&original, "seed_pruned").len() > 1);
    for decision in of_kind(&replayed, "decision") {
        assert_eq!(decision["data"]["reason"], "replayed");
    }
}

#[test]
#[ignore = "long tier"]
fn a_run_that_cannot_be_replayed_is_refused_with_every_reason() {
    let (folder, original) = original();
    let folder = folder.path();
    let replay_it = replay(&original);
    let random = "--set policy.controller=random";
    // Records that have lost decisions: all of them, and those of every other step.
    let [quiet, thinned] = [("quiet", 1), ("thinned", 2)].map(|(name, stride)| {
        let run = play(folder, name, random);
        let events = run.join("events.jsonl");
        let text = std::fs::read_to_string(&events).expect("it has events");
        let is_kept =
            |line: &&str| !line.contains(r#""type":"decision""#) || stride == 2 && !line.contains(r#""step":2,"#);
        let kept: Vec<&str> = text.lines().filter(is_kept).collect();
        std::fs::write(&events, kept.join("\n") + "\n").expect("they can be written");
        run
    });

    let longer = [
        "it had 2 envs, this run plays 4",
        "its episodes had 22 steps, those of this run have 30",
        "it completed 2 rounds, this run plays 3",
    ];
    assert_refused(folder, &format!("--rounds 3 --envs 4 --steps 30 {replay_it}"), &longer);
    let narrower = format!(r#"{replay_it} --set lifecycle.slots=["r0c1"]"#);
    let thinned_out = "no decision of env 0 in step 2 of round 1 is recorded";
    for (set, reason) in [
        (narrower, "slot `r0c0` is not enabled"),
        ("--set policy.controller=replay".into(), "policy.replay.run"),
        (replay(Path::new("gone")), "there is no run"),
        (replay(&quiet), "it recorded no decisions"),
        (replay(&thinned), thinned_out),
    ] {
        assert_refused(folder, &format!("{LENGTH} {set}"), &[reason]);
    }
}

#[test]
fn a_recorded_command_that_is_illegal_now_ends_the_run_or_becomes_a_wait() {
    let (folder, original) = original();
    let set = "--set lifecycle.max_seeds=1 --set lifecycle.min_prune_age=20";
    let replay = format!("{LENGTH} {} {set}", replay(&original));

    let strict = ends_with(3, &start(folder.path(), "strict", &replay));
    let lenient = format!("{replay} --set policy.replay.wait_on_illegal=true");
    let lenient = ends_with(0, &start(folder.path(), "lenient", &lenient));

    assert_has(&strict, &["the replay orders"]);
    assert_eq!(lenient.matches("waits instead").count(), 1, "said once");
}

#[test]
fn a_static_topology_stands_before_the_first_step_and_stays() {
    let folder = folder();
    let seeds = r#"(slot: "r0c2", blueprint: "norm"), (slot: "r0c0", blueprint: "conv_small", style: "gated_gate")"#;

    let set = format!("--set policy.controller=static --set 'initial_topology=seeds([{seeds}])'");
    let run = play(folder.path(), "listed", &set);

    let steps = events(&run, "env_step");
    assert_eq!(steps.len(), 2 * 2 * 22);
    for step in &steps {
        let seeds = step["data"]["seeds"].as_array().expect("seeds");
        let slots: Vec<_> = seeds.iter().map(|seed| &seed["slot"]).collect();
        assert_eq!(slots, ["r0c0", "r0c2"]);
        let stands = |seed: &Value| seed["stage"] == "COMMITTED" && seed.get("alpha").is_none();
        assert!(seeds.iter().all(stands), "{seeds:?}");
    }
    let planted = events(&run, "seed_committed");
    assert_eq!(planted.len(), 2 * 2 * 2);
    for event in &planted {
        let is_first = event["slot"] == "r0c0";
        assert_eq!(event["data"]["blueprint"], if is_first { "conv_small" } else { "norm" });
        assert_eq!(event["step"], 0);
    }
    // Fresh weights for every episode and slot.
    let germinated = events(&run, "seed_germinated");
    let streams = germinated.iter().map(|event| event["data"]["rng_seed"].to_string());
    assert_eq!(streams.collect::<BTreeSet<_>>().len(), 2 * 2 * 2);
    for decision in events(&run, "decision") {
        assert_eq!(decision["data"]["op"], "WAIT");
    }
    // The host that never grew never grew, nor did the others.
    let measured = events(&run, "baseline_measured").remove(0);
    assert_eq!(measured["data"]["hosts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_schedule_is_known_by_the_hash_of_its_orders() {
    let folder = folder();
    let seed = r#"slot: "r0c0", blueprint: "norm", style: "sigmoid_add", tempo: "standard", target: "full""#;
    let advance = |step| format!(r#"(step: {step}, command: advance(slot: "r0c0"))"#);
    let [trains, blends, is_held] = [2, 12, 17].map(advance);
    let set = format!(
        "--set preset=manual --set policy.controller=schedule --set policy.schedule.wait_on_illegal=true \
         --set 'policy.schedule.entries=[(step: 1, command: germinate({seed})), {trains}, {blends}, {is_held}, \
         (step: 18, command: commit(slot: \"r0c0\"))]'"
    );

    let run = play(folder.path(), "grown", &set);

    // It grows one seed an episode, and commits it at step 18.
    assert_eq!(events(&run, "seed_committed").len(), 4);
    let hash = &events(&run, "run_started")[0]["data"]["controller_hash"];
    assert_eq!(hash, "ec5bbce4686177b486454a3a87b43a45c0724e790028ea66eda9c2078f838f3c");
}

#[test]
fn a_topology_that_is_none_is_refused() {
    let folder = folder();
    let norm = r#"(slot: "r0c0", blueprint: "norm")"#;

    let none = format!("{LENGTH} --set policy.controller=static");
    assert_refused(folder.path(), &none, &["the static controller needs seeds"]);
    let twice = format!("{none} --set 'initial_topology=seeds([{norm}, {norm}])'");
    assert_refused(folder.path(), &twice, &["slot r0c0 is listed twice"]);
}
