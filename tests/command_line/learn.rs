//! Policies that learn from recordings, and from what they did themselves some rollouts ago.

use std::fs;
use std::path::Path;

use crate::program::{newest, refused, reproducible_events, succeeds, text};
use crate::traj::{RECORDED, engine, place};

/// What `eval` says of the policies of runs: mean accuracies by player.
fn accuracies(at: &Path, run: &str) -> Vec<(String, f64)> {
    let arguments = [
        "eval",
        run,
        "--against",
        "none",
        "--greedy",
        "--episodes",
        "4",
        "--json",
    ];
    let read: serde_json::Value = serde_json::from_str(&succeeds(&engine(at, &arguments))).expect("JSON");
    let players = read["players"].as_array().expect("players").iter();
    players
        .map(|player| {
            let name = player["name"].as_str().expect("a name").to_owned();
            (name, player["accuracy"]["mean"]["value"].as_f64().expect("a number"))
        })
        .collect()
}

/// Orders of a schedule, which a policy that imitates it gives as well.
const TEACHER: &str = r#"(
    name: "teacher",
    task: preset("digits_minimal", (batches_per_step: count(2))),
    run: (rounds: 4, n_envs: 4, max_steps: 8),
    policy: (controller: "schedule", schedule: (wait_on_illegal: true, entries: [
        (step: 2, command: germinate(slot: "r0c1", blueprint: "conv_light", style: "sigmoid_add", tempo: "fast", target: "full")),
    ])),
    lifecycle: (auto_forward: (g1: true, g2: true, g3: true), gates: (min_training_steps: 1, min_gradient_health: 0.0)),
    telemetry: (trajectories: true),
)"#;

/// Another rent than the teacher was paid by: its rewards follow from their parts.
const CLONE: &str = r#"(
    name: "clone",
    task: preset("digits_minimal", (batches_per_step: count(2))),
    run: (rounds: 20, n_envs: 8, max_steps: 8),
    policy: (controller: "actor_critic", preset: "lstm_small"),
    reward: contribution(committed((rent: 0.25))),
    lifecycle: (auto_forward: (g1: true, g2: true, g3: true), gates: (min_training_steps: 1, min_gradient_health: 0.0)),
    learner: (recordings: (sets: ["teacher"]), algorithm: clone(()), lr: 5e-3, entropy_coef: 0.01),
)"#;

#[test]
fn a_policy_that_clones_a_schedule_gives_its_orders_and_resumes_to_the_same_bits() {
    let place = place();
    let write = |name: &str, text: &str| fs::write(place.path().join(name), text).expect("written");
    write("teacher.ron", TEACHER);
    write("clone.ron", CLONE);
    succeeds(&engine(place.path(), &["run", "teacher.ron", "-q"]));
    let taught = newest(&place.path().join("runs"));
    fs::rename(taught.join("episodes.traj"), place.path().join("teacher")).expect("moved");
    let told = engine(place.path(), &["learn", "clone.ron", "--out", "whole"]);
    succeeds(&told);
    let told = text(&told.stderr);
    let short = refused(&engine(place.path(), &["learn", "clone.ron", "--steps", "4"]));
    assert!(
        short.contains("its episodes have up to 8 steps; set run.max_steps, 4"),
        "{short}"
    );
    let cut = refused(&engine(
        place.path(),
        &["learn", "clone.ron", "--set", "learner.chunk_length=4"],
    ));
    assert!(cut.contains("need whole episodes: leave chunks out"), "{cut}");
    assert!(
        told.contains("20 updates from recordings") && !told.contains("NaN"),
        "{told}"
    );
    succeeds(&engine(
        place.path(),
        &[
            "learn",
            "clone.ron",
            "-q",
            "--out",
            "halves",
            "--until",
            "9",
            "--threads",
            "1",
        ],
    ));
    succeeds(&engine(place.path(), &["resume", "latest", "-q", "--out", "halves"]));

    let (whole, halves) = (
        newest(&place.path().join("whole")),
        newest(&place.path().join("halves")),
    );

    let equal = engine(
        place.path(),
        &[
            "diff",
            &whole.to_string_lossy(),
            &halves.to_string_lossy(),
            "--only",
            "events",
        ],
    );
    assert_eq!(equal.status.code(), Some(0), "{}", text(&equal.stdout));
    let updates = reproducible_events(&whole);
    let updates = updates.iter().filter(|event| event["type"] == "learner_update");
    let losses: Vec<f64> = updates
        .filter_map(|event| event["data"]["loss_policy"].as_f64())
        .collect();
    assert_eq!(losses.len(), 20);
    assert!(losses[19] < 0.2 * losses[0], "{losses:?}");
    let unlikely: Vec<f64> = updates_of(&whole, ["held_out_nll"]).iter().map(|[nll]| *nll).collect();
    assert!(
        unlikely[19] < 0.2 * unlikely[0],
        "what was held out is imitated as well: {unlikely:?}"
    );
    let shown = succeeds(&engine(place.path(), &["show", &whole.to_string_lossy()]));
    assert!(
        shown.starts_with("digits_minimal: a policy learns from recordings") && !shown.contains("NaN"),
        "{shown}"
    );
    succeeds(&engine(place.path(), &["check", &whole.to_string_lossy()]));
    succeeds(&engine(
        place.path(),
        &["report", &whole.to_string_lossy(), "-o", "report.html"],
    ));
    let played = accuracies(place.path(), &whole.to_string_lossy());
    assert_eq!(played.len(), 1, "{played:?}");
    let told = succeeds(&engine(
        place.path(),
        &[
            "eval",
            &whole.to_string_lossy(),
            "--against",
            "none",
            "--greedy",
            "--episodes",
            "4",
        ],
    ));
    assert!(told.contains("r0c1"), "{told}");
}

#[test]
fn a_network_that_looks_back_on_a_window_imitates_and_decides_with_envs() {
    let place = place();
    fs::write(place.path().join("teacher.ron"), TEACHER).expect("written");
    fs::write(place.path().join("clone.ron"), CLONE).expect("written");
    succeeds(&engine(place.path(), &["run", "teacher.ron", "-q"]));
    let taught = newest(&place.path().join("runs"));
    fs::rename(taught.join("episodes.traj"), place.path().join("teacher")).expect("moved");

    succeeds(&engine(
        place.path(),
        &["learn", "clone.ron", "-q", "--set", "policy.net=window"],
    ));

    let run = newest(&place.path().join("runs"));
    let unlikely = updates_of(&run, ["held_out_nll"]);
    assert!(unlikely[19][0] < 0.3 * unlikely[0][0], "{unlikely:?}");
    let played = accuracies(place.path(), &run.to_string_lossy());
    assert_eq!(played.len(), 1, "{played:?}");
}

#[test]
fn recordings_that_cannot_be_learnt_from_are_refused_by_field() {
    let place = place();
    fs::write(place.path().join("clone.ron"), CLONE).expect("written");
    succeeds(&engine(
        place.path(),
        &[&RECORDED[..], &["--set", "task.slots=Some([\"r0c0\"])"]].concat(),
    ));
    let run = newest(&place.path().join("runs"));

    let none = refused(&engine(place.path(), &["learn", "clone.ron"]));
    assert!(none.contains("teacher is no set of trajectories"), "{none}");
    fs::rename(run.join("episodes.traj"), place.path().join("teacher")).expect("moved");
    let misfit = refused(&engine(place.path(), &["learn", "clone.ron"]));
    assert!(
        misfit.contains("of `slots` it has `r0c0` in place 1") || misfit.contains("of `slots` it has 1 names"),
        "{misfit}"
    );
    let idle = refused(&engine(
        place.path(),
        &["learn", "clone.ron", "--set", "policy.controller=wait"],
    ));
    assert!(idle.contains("the controller `wait` does not learn"), "{idle}");
    let empty = refused(&engine(
        place.path(),
        &["learn", "clone.ron", "--set", "learner.recordings.sets=[]"],
    ));
    assert!(empty.contains("there is nothing to imitate"), "{empty}");
    let online = refused(&engine(place.path(), &["learn", "tiny.ron"]));
    assert!(online.contains("learner.recordings names no sets"), "{online}");
}

/// A policy that learns from its last rollouts, and records them.
const REHEARSING: &str = r#"(
    name: "rehearsing",
    task: preset("digits_minimal", (batches_per_step: count(2))),
    run: (rounds: 6, n_envs: 3, max_steps: 10, checkpoint_every: 1),
    policy: (controller: "actor_critic", preset: "lstm_small"),
    learner: (algorithm: impala((rollouts: 3)), epochs: 3),
    telemetry: (trajectories: true),
)"#;

/// What the updates of a run say under these names.
fn updates_of<const N: usize>(run: &Path, names: [&str; N]) -> Vec<[f64; N]> {
    let events = reproducible_events(run);
    let updates = events.iter().filter(|event| event["type"] == "learner_update");
    updates
        .map(|event| names.map(|name| event["data"][name].as_f64().unwrap_or(f64::NAN)))
        .collect()
}

#[test]
fn updates_from_the_last_rollouts_are_the_same_after_a_resume_and_with_any_number_of_threads() {
    let place = place();
    fs::write(place.path().join("rehearsing.ron"), REHEARSING).expect("written");
    let played = |arguments: &[&str]| succeeds(&engine(place.path(), arguments));
    played(&["run", "rehearsing.ron", "-q", "--out", "whole"]);
    let began = ["run", "rehearsing.ron", "-q", "--out", "halves", "--until", "4"];
    played(&[&began[..], &["--threads", "1"]].concat());
    played(&["resume", "latest", "-q", "--out", "halves"]);

    let [whole, halves] = ["whole", "halves"].map(|runs| newest(&place.path().join(runs)));

    let runs = [whole.to_string_lossy(), halves.to_string_lossy()];
    played(&["diff", &runs[0], &runs[1], "--only", "events"]);
    let measured = updates_of(&whole, ["steps_valid", "behaviour_ratio_mean", "effective_share"]);
    let steps: Vec<f64> = measured.iter().map(|[steps, ..]| *steps).collect();
    assert_eq!(steps, [30.0, 60.0, 90.0, 90.0, 90.0, 90.0], "three rollouts at most");
    let [_, ratio, share] = measured[0];
    assert!(
        (ratio - 1.0).abs() < 1e-5 && (share - 1.0).abs() < 1e-5,
        "{ratio} {share}"
    );
    assert!(
        measured[1..]
            .iter()
            .all(|[_, ratio, share]| *ratio != 1.0 && *share < 0.9999),
        "{measured:?}"
    );
}

#[test]
fn ppo_and_v_trace_learn_from_recordings_of_a_policy_but_not_of_a_rule() {
    let place = place();
    fs::write(place.path().join("rehearsing.ron"), REHEARSING).expect("written");
    fs::write(place.path().join("teacher.ron"), TEACHER).expect("written");
    let learnt = |algorithm: &str, sets: &str| {
        let sets = format!("learner.recordings.sets=[{sets:?}]");
        let algorithm = format!("learner.algorithm={algorithm}");
        let arguments = ["learn", "rehearsing.ron", "-q", "--set", &sets, "--set", &algorithm];
        engine(
            place.path(),
            &[&arguments[..], &["--set", "telemetry.trajectories=false"]].concat(),
        )
    };
    succeeds(&engine(place.path(), &["run", "rehearsing.ron", "-q"]));
    let played = newest(&place.path().join("runs"));
    succeeds(&engine(place.path(), &["run", "teacher.ron", "-q", "--out", "rules"]));
    let ruled = newest(&place.path().join("rules"));

    for algorithm in ["ppo", "impala(())"] {
        succeeds(&learnt(algorithm, &played.to_string_lossy()));
        let run = newest(&place.path().join("runs"));
        let events = fs::read_to_string(run.join("events.jsonl")).expect("events");
        let events = events
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        let copied: Vec<f64> = events
            .filter_map(|event| event["data"]["perf"]["copy_ms"].as_f64())
            .collect();
        assert!(
            copied.len() == 6 && copied.iter().all(|copied| *copied > 0.0),
            "{copied:?}"
        );
        let names = ["effective_share", "stale_segments", "logp_drift_mean"];
        let measured = updates_of(&run, names);
        assert_eq!(measured.len(), 6);
        assert!(
            measured
                .iter()
                .all(|[share, stale, drift]| (0.1..0.9999).contains(share) && *stale == 0.0 && *drift < 1e-5),
            "{measured:?}"
        );
        let refusal = refused(&learnt(algorithm, &ruled.to_string_lossy()));
        assert!(refusal.contains("`schedule` has not drawn its choices"), "{refusal}");
    }
}

#[test]
fn a_policy_that_is_held_to_its_teacher_leaves_it_once_the_critic_knows_its_returns() {
    let place = place();
    fs::write(place.path().join("rehearsing.ron"), REHEARSING).expect("written");
    let played = |arguments: &[&str]| succeeds(&engine(place.path(), &[arguments, &["-q"]].concat()));
    let own = [
        "run",
        "rehearsing.ron",
        "--set",
        "telemetry.trajectories=false",
        "--set",
        "learner.algorithm=ppo",
    ];
    played(&own);
    let teacher = newest(&place.path().join("runs")).join("checkpoints/last/policy");
    let from = format!("policy.init_from={}", teacher.display());
    let held = format!("policy.teacher={}", teacher.display());
    let taught = [
        &own[..],
        &["--set", &from, "--set", &held, "--set", "learner.teaching.updates=4"],
    ]
    .concat();
    played(&[&taught[..], &["--out", "whole"]].concat());
    played(&[&taught[..], &["--out", "halves", "--until", "3", "--threads", "1"]].concat());
    played(&["resume", "latest", "--out", "halves"]);

    let [whole, halves] = ["whole", "halves"].map(|runs| newest(&place.path().join(runs)));

    let runs = [whole.to_string_lossy(), halves.to_string_lossy()];
    succeeds(&engine(place.path(), &["diff", &runs[0], &runs[1], "--only", "events"]));
    let [divergences, moves] = [0, 1].map(|at| -> Vec<f64> {
        let measured = updates_of(&whole, ["teacher_kl", "approx_kl"]);
        measured.iter().map(|update| update[at]).collect()
    });
    // Observation statistics move after each rollout, those of the teacher do not.
    assert!(divergences[0] < 1e-6, "both are the same policy: {divergences:?}");
    assert!(
        moves[..2].iter().all(|moved| moved.abs() < 1e-7),
        "the critic alone learns: {moves:?}"
    );
    assert!(moves[2..].iter().all(|moved| *moved > 1e-6), "{moves:?}");
    assert!(divergences[3] > divergences[0], "{divergences:?}");
    assert!(
        divergences[4..].iter().all(|held| held.is_nan()),
        "it is held no longer: {divergences:?}"
    );
}
