//! Policies that learn from recordings, and from what they did themselves some rollouts ago.

use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;

use crate::program::{assert_has, copy_of, ends_with, engine_at, events, newest, played, refused, succeeds, write};
use crate::support::lines;
use crate::traj::{engine, runs};

/// Orders of a schedule, which a policy that imitates it gives as well.
const TEACHER: &str = r#"(
    name: "teacher",
    task: preset("digits_minimal", (batches_per_step: count(2))),
    run: (rounds: 4, n_envs: 4, max_steps: 8, trajectories: true),
    policy: (controller: "schedule", schedule: (wait_on_illegal: true, entries: [
        (step: 2, command: germinate(slot: "r0c1", blueprint: "conv_light", style: "sigmoid_add", tempo: "fast", target: "full")),
    ])),
    lifecycle: (auto_forward: true, gates: (min_training_steps: 1, min_gradient_health: 0.0)),
)"#;

/// The rent differs from the teacher's, so its rewards follow from their parts.
const CLONE: &str = r#"(
    name: "clone",
    task: preset("digits_minimal", (batches_per_step: count(2))),
    run: (rounds: 20, n_envs: 8, max_steps: 8),
    policy: (controller: "actor_critic"),
    reward: contribution(committed((rent: 0.25))),
    lifecycle: (auto_forward: true, gates: (min_training_steps: 1, min_gradient_health: 0.0)),
    learner: (recordings: (sets: ["runs/teacher"]), algorithm: clone(()), lr: 5e-3, entropy_coef: 0.01),
)"#;

/// A policy that learns from its last rollouts, and records them.
const REHEARSING: &str = r#"(
    name: "rehearsing",
    task: preset("digits_minimal", (batches_per_step: count(2))),
    run: (rounds: 6, n_envs: 3, max_steps: 10, trajectories: true),
    policy: (controller: "actor_critic"),
    learner: (algorithm: impala((rollouts: 3)), epochs: 3),
)"#;

/// A folder with these scenarios and two runs with their recordings, `teacher` and `rehearsed`.
fn place() -> tempfile::TempDir {
    static PLACE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            write(&folder.join("clone.ron"), CLONE);
            for (name, scenario) in [("teacher", TEACHER), ("rehearsed", REHEARSING)] {
                write(&folder.join(format!("{name}.ron")), scenario);
                succeeds(&engine(folder, &format!("run {name}.ron -q --id {name}")));
            }
        })
    });
    copy_of(&PLACE)
}

/// Values under these names in the updates of a run.
fn updates_of<const N: usize>(run: &Path, names: [&str; N]) -> Vec<[f64; N]> {
    let number = |event: &Value, name: &str| event["data"][name].as_f64().unwrap_or(f64::NAN);
    let updates = events(run, "learner_update").into_iter();
    updates.map(|event| names.map(|name| number(&event, name))).collect()
}

#[test]
#[ignore = "long tier"]
fn a_policy_that_clones_a_schedule_gives_its_orders_and_resumes_to_the_same_bits() {
    let place = place();
    let run = |line: &str| succeeds(&engine_at(place.path(), line));
    let said = ends_with(0, &engine(place.path(), "learn clone.ron --out whole"));
    assert_has(&said, &["20 updates from recordings"]);
    assert!(!said.contains("NaN"), "{said}");
    run("learn clone.ron -q --out halves --until 9 --threads 1");
    run("resume latest -q --out halves --threads 2");

    run("diff whole/latest halves/latest --only events");
    let measured = updates_of(&newest(&place.path().join("whole")), ["loss_policy", "held_out_nll"]);
    assert_eq!(measured.len(), 20);
    let falls = |index: usize| measured[19][index] < 0.2 * measured[0][index];
    // What was held out is imitated as well.
    assert!(falls(0) && falls(1), "{measured:?}");
    let shown = run("show whole/latest");
    let task = "digits_minimal: a policy learns from recordings";
    assert!(shown.starts_with(task) && !shown.contains("NaN"), "{shown}");
    run("check whole/latest");
    run("report whole/latest -o report.html");
    let played = run("eval whole/latest --against none --greedy --episodes 4");
    assert_has(&played, &["policy (greedy)", "r0c1"]);

    let refusal = refused(&engine(place.path(), "learn clone.ron --steps 4"));
    assert_has(&refusal, &["its episodes have up to 8 steps, but run.max_steps is 4"]);
}

#[test]
#[ignore = "long tier"]
fn a_network_that_looks_back_on_a_window_imitates_and_decides_with_envs() {
    let place = place();

    let window = "learn clone.ron -q --set policy.net=window --id window";
    succeeds(&engine(place.path(), window));

    let unlikely = updates_of(&place.path().join("runs/window"), ["held_out_nll"]);
    assert!(unlikely[19][0] < 0.3 * unlikely[0][0], "{unlikely:?}");
    let played = engine(place.path(), "eval window --against none --greedy --episodes 4");
    assert_has(&succeeds(&played), &["policy (greedy)"]);
}

#[test]
#[ignore = "long tier"]
fn recordings_that_cannot_be_learnt_from_are_refused_by_field() {
    let place = runs();
    write(&place.path().join("none.ron"), CLONE);
    write(&place.path().join("clone.ron"), CLONE.replace("teacher", "narrow"));

    for (learnt, expected) in [
        ("none.ron", "teacher isn't a set of trajectories"),
        ("clone.ron", "in `slots` it has "),
        ("clone.ron --set policy.controller=wait", "`wait` does not learn"),
        ("clone.ron --set learner.recordings.sets=[]", "nothing to imitate"),
        ("tiny.ron", "learner.recordings names no sets"),
    ] {
        let refusal = refused(&engine(place.path(), &format!("learn {learnt}")));
        assert_has(&refusal, &[expected]);
    }
}

#[test]
#[ignore = "long tier"]
fn updates_from_the_last_rollouts_are_the_same_after_a_resume_and_with_any_number_of_threads() {
    let place = place();
    let run = |line: &str| succeeds(&engine_at(place.path(), line));
    run("run rehearsed.ron -q --out halves --until 4 --threads 1");
    run("resume latest -q --out halves --threads 2");

    run("diff rehearsed halves/latest --only events");
    let names = ["steps_valid", "behaviour_ratio_mean", "effective_share"];
    let measured = updates_of(&place.path().join("runs/rehearsed"), names);
    let steps: Vec<f64> = measured.iter().map(|[steps, ..]| *steps).collect();
    assert_eq!(steps, [30.0, 60.0, 90.0, 90.0, 90.0, 90.0], "three rollouts at most");
    let [_, ratio, share] = measured[0];
    let is_own = (ratio - 1.0).abs() < 1e-5 && (share - 1.0).abs() < 1e-5;
    assert!(is_own, "{ratio} {share}");
    for [_, ratio, share] in &measured[1..] {
        assert!(*ratio != 1.0 && *share < 0.9999, "{measured:?}");
    }
}

#[test]
#[ignore = "long tier"]
fn ppo_and_v_trace_learn_from_recordings_of_a_policy_but_not_of_a_rule() {
    let place = place();
    for algorithm in ["ppo", "impala(())"] {
        let id = &algorithm[..3];
        let learnt = |set: &str| {
            let sets = format!(r#"--set learner.recordings.sets=["runs/{set}"]"#);
            let more = format!("--set learner.algorithm={algorithm} --set run.trajectories=false");
            engine(place.path(), &format!("learn rehearsed.ron -q --id {id} {sets} {more}"))
        };
        succeeds(&learnt("rehearsed"));

        let run = place.path().join("runs").join(id);
        let copied = |event: Value| event["data"]["perf"]["copy_ms"].as_f64();
        let copied: Vec<f64> = lines(&run).into_iter().filter_map(copied).collect();
        let has_copied = copied.iter().all(|copied| *copied > 0.0);
        assert!(copied.len() == 6 && has_copied, "{copied:?}");
        let measured = updates_of(&run, ["effective_share", "stale_segments", "logp_drift_mean"]);
        assert_eq!(measured.len(), 6);
        for [share, stale, drift] in &measured {
            let is_learnt = (0.1..0.9999).contains(share) && *stale == 0.0 && *drift < 1e-5;
            assert!(is_learnt, "{measured:?}");
        }
        let refusal = refused(&learnt("teacher"));
        assert_has(&refusal, &["`schedule` did not sample its choices"]);
    }
}

#[test]
#[ignore = "long tier"]
fn a_policy_that_is_held_to_its_teacher_leaves_it_once_the_critic_knows_its_returns() {
    let place = place();
    let run = |line: &str| succeeds(&engine_at(place.path(), line));
    let own = "run rehearsed.ron -q --set run.trajectories=false --set learner.algorithm=ppo";
    run(&format!("{own} --id own --threads 2"));
    let teacher = place.path().join("runs/own/checkpoints/last/policy");
    let teacher = teacher.display();
    let from = format!("--set 'policy.init_from={teacher}' --set 'policy.teacher={teacher}'");
    let taught = format!("{own} {from} --set run.rounds=24");
    run(&format!("{taught} --out whole --threads 2"));
    run(&format!("{taught} --out halves --until 3 --threads 1"));
    run("resume latest -q --out halves --threads 2");

    run("diff whole/latest halves/latest --only events");
    let measured = updates_of(&newest(&place.path().join("whole")), ["teacher_kl", "approx_kl"]);
    let [divergences, moves] = [0, 1].map(|at| -> Vec<f64> { measured.iter().map(|update| update[at]).collect() });
    // Observation statistics move after each rollout, those of the teacher do not.
    assert!(divergences[0] < 1e-6, "both are the same policy: {divergences:?}");
    let is_still = moves[..2].iter().all(|moved| moved.abs() < 1e-7);
    assert!(is_still, "the critic alone learns: {moves:?}");
    assert!(moves[2..6].iter().all(|moved| *moved > 1e-6), "{moves:?}");
    assert!(divergences[3] > divergences[0], "{divergences:?}");
    assert!(divergences[23].is_nan(), "it is held no longer: {divergences:?}");
}
