//! Anomalies of a run: they are recorded, and a run does what its scenario says of them.

use std::path::{Path, PathBuf};

use serde_json::Value;
use simic_engine::internals::checkpoint::{CheckpointId, CheckpointName, Checkpoints};
use simic_engine::internals::engine::RunReport;
use simic_engine::internals::run::StopRequest;
use simic_engine::internals::telemetry::{TelemetryHub, strip_volatile};
use simic_engine::prelude::*;

use crate::recorded::{NOTHING, play, resumed};
use crate::support::lines;

/// Env 1 breaks in step 3 and is rolled back.
fn scenario(answer: &str) -> String {
    format!(
        r#"(
            name: "anomalies", task: preset("digits_impaired", (batches_per_step: count(4), val_batches_per_step: count(1))),
            run: (rounds: 2, n_envs: 2, max_steps: 6, on_anomaly: (error: {answer})),
            policy: (controller: "wait"),
            faults: [(env: 1, round: 0, step: 3, batch: 1, fault: nan_weight)],
        )"#
    )
}

fn directory(report: &RunReport) -> PathBuf {
    assert!(report.failure.is_none(), "{:?}", report.failure);
    report.record.as_ref().expect("it was recorded").directory.clone()
}

/// Lines of a type, without what differs from run to run.
fn told(run: &Path, kind: &str) -> Vec<Value> {
    let lines = lines(run);
    lines
        .iter()
        .filter(|line| line["type"] == kind)
        .filter_map(strip_volatile)
        .collect()
}

fn rows(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("the file is there");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

#[test]
fn an_anomaly_follows_the_event_that_shows_it_and_nothing_else_happens_by_default() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let run = directory(&play(&scenario("note"), folder.path(), NOTHING));

    let lines = lines(&run);
    let found: Vec<_> = (1..lines.len())
        .filter(|&line| lines[line]["type"] == "anomaly")
        .collect();
    let states: Vec<_> = found
        .iter()
        .map(|&line| lines[line]["data"]["state"].as_str())
        .collect();
    assert_eq!(states, [Some("onset"), Some("cleared")], "{lines:#?}");
    let (onset, cause) = (&lines[found[0]], &lines[found[0] - 1]);
    assert_eq!(
        (&onset["data"]["rule"], &onset["sev"]),
        (&"numerical_instability".into(), &"error".into())
    );
    assert_eq!(cause["type"], "env_step");
    for field in ["round", "env", "step"] {
        assert_eq!(onset[field], cause[field], "{field}");
    }
    assert!(!run.join("anomalies").exists());
}

#[test]
fn a_checkpoint_and_what_led_to_the_anomaly_are_kept_where_the_scenario_asks_for_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let noted = directory(&play(&scenario("note"), &folder.path().join("noted"), NOTHING));

    let run = directory(&play(&scenario("checkpoint"), &folder.path().join("kept"), NOTHING));

    let saved = lines(&run).into_iter().find(|line| line["data"]["reason"] == "anomaly");
    let saved = saved.expect("a checkpoint was written");
    assert_eq!(
        (&saved["data"]["round"], &saved["data"]["step"]),
        (&0.into(), &3.into())
    );
    let anomaly = run.join("anomalies/1");
    let event: Value =
        serde_json::from_slice(&std::fs::read(anomaly.join("anomaly.json")).expect("it is there")).expect("JSON");
    assert_eq!(
        (&event["data"]["rule"], &event["env"]),
        (&"numerical_instability".into(), &1.into())
    );
    let steps = rows(&anomaly.join("steps.jsonl"));
    let steps: Vec<_> = steps
        .iter()
        .filter(|row| row["type"] == "env_step")
        .map(|row| row["step"].as_u64())
        .collect();
    assert_eq!(steps, [1, 1, 2, 2, 3, 3].map(Some));
    assert!(rows(&anomaly.join("updates.jsonl")).is_empty());
    let precision: Value =
        serde_json::from_slice(&std::fs::read(anomaly.join("precision.json")).expect("it is there")).expect("JSON");
    assert_eq!(precision["matmul_precision"], "highest");
    assert!(
        precision["envs"][1]["nonfinite_batches"].as_u64() > Some(0),
        "{precision}"
    );
    assert!(!run.join("anomalies/2").exists());
    // What is trained does not depend on it.
    assert_eq!(told(&run, "env_step"), told(&noted, "env_step"));
}

#[test]
fn a_run_that_stops_for_an_anomaly_says_why_and_its_resume_does_not_repeat_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let noted = directory(&play(&scenario("note"), &folder.path().join("noted"), NOTHING));

    let report = play(&scenario("stop"), &folder.path().join("stopped"), NOTHING);
    let run = directory(&report);

    assert_eq!(report.stopped_by, Some(StopRequest::Anomaly));
    assert_eq!(Checkpoints::of(&run).ids()[0], CheckpointId { round: 0, step: 3 });
    let note = told(&run, "note").remove(0);
    assert_eq!(
        note["data"]["text"],
        "the run stops: numerical_instability (run.on_anomaly.error)"
    );
    assert_eq!(told(&run, "run_finished")[0]["data"]["status"], "interrupted");

    let mut engine = resumed(&run, CheckpointName::Last, NOTHING, 1).expect("the run can be resumed");
    let report = engine.play();

    assert_eq!(report.stopped_by, None);
    assert_eq!(told(&run, "anomaly"), told(&noted, "anomaly"));
    assert_eq!(told(&run, "env_step"), told(&noted, "env_step"));
}

#[derive(Resource, Default)]
struct Seen(u32);

#[test]
fn a_system_sees_an_anomaly_in_the_step_in_which_it_begins() {
    let watch = |hub: Res<TelemetryHub>, mut seen: ResMut<Seen>| seen.0 += hub.onsets().count() as u32;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let builder = Engine::builder().threads(2).recorded(folder.path());
    let mut engine = builder.from_ron(&scenario("note")).expect("the scenario is sound");
    let app = engine.app_mut().init_resource::<Seen>();
    app.add_systems(StepEnd, watch.in_set(EngineSet::Record).after(Work::EmitStep));

    engine.play();

    assert_eq!(engine.world_mut().resource::<Seen>().0, 1);
}
