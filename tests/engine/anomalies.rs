//! Anomalies of a run: they are recorded, and a run does what its scenario says about them.

use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use simic_engine::internals::checkpoint::{CheckpointId, CheckpointName, Checkpoints};
use simic_engine::internals::run::StopRequest;
use simic_engine::internals::telemetry::{TelemetryHub, strip_volatile};
use simic_engine::prelude::*;

use crate::recorded::{NOTHING, directory, play, resumed};
use crate::support::{builder, lines};
use crate::training_loop::support::Notes;

/// Env 1 breaks in step 3 and is rolled back.
fn scenario(answer: &str) -> String {
    format!(
        r#"(
            name: "anomalies", task: preset("digits_impaired", (batches_per_step: count(4), val_batches_per_step: count(1))),
            run: (rounds: 2, n_envs: 2, max_steps: 6, on_anomaly: {answer}),
            policy: (controller: "wait"),
            faults: [(env: 1, round: 0, step: 3, batch: 1, fault: nan_weight)],
        )"#
    )
}

/// Lines of a run that only notes its anomaly, whether it keeps more of it, and the onsets that a system saw.
static NOTED: LazyLock<(Vec<Value>, bool, u32)> = LazyLock::new(|| {
    let watch = |hub: Res<TelemetryHub>, mut seen: ResMut<Notes<u32>>| seen.0 += hub.onsets().count() as u32;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let builder = builder().threads(2).recorded(folder.path());
    let mut engine = builder.from_ron(&scenario("note")).expect("the scenario is sound");
    let app = engine.app_mut().init_resource::<Notes<u32>>();
    app.add_systems(StepEnd, watch.in_set(EngineSet::Record).after(Work::EmitStep));
    let run = directory(&engine.play());
    let seen = engine.world().resource::<Notes<u32>>().0;
    (lines(&run), run.join("anomalies").exists(), seen)
});

/// Lines of a type, without what differs from run to run.
fn of_type(lines: &[Value], kind: &str) -> Vec<Value> {
    let lines = lines.iter().filter(|line| line["type"] == kind);
    lines.filter_map(strip_volatile).collect()
}

fn rows(file: &Path) -> Vec<Value> {
    let text = std::fs::read(file).expect("the file is there");
    let rows = serde_json::Deserializer::from_slice(&text).into_iter();
    rows.map(|row| row.expect("JSON")).collect()
}

#[test]
fn an_anomaly_follows_the_event_that_shows_it_is_seen_by_systems_and_nothing_else_happens_by_default() {
    let (lines, keeps_more, seen) = &*NOTED;

    let found = (1..lines.len()).filter(|&line| lines[line]["type"] == "anomaly");
    let found: Vec<_> = found.map(|line| (&lines[line - 1], &lines[line])).collect();
    let states: Vec<_> = found.iter().map(|(_, line)| &line["data"]["state"]).collect();
    assert_eq!(states, ["onset", "cleared"], "{lines:#?}");
    let (cause, onset) = found[0];
    assert_eq!(
        [&onset["data"]["rule"], &onset["sev"]],
        ["numerical_instability", "error"]
    );
    assert_eq!(cause["type"], "env_step");
    for field in ["round", "env", "step"] {
        assert_eq!(onset[field], cause[field], "{field}");
    }
    assert_eq!((*keeps_more, *seen), (false, 1));
}

#[test]
fn a_checkpoint_and_what_led_to_the_anomaly_are_kept_where_the_scenario_asks_for_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let run = directory(&play(&scenario("checkpoint"), folder.path(), NOTHING));

    let lines = lines(&run);
    let saved = lines.iter().find(|line| line["data"]["reason"] == "anomaly");
    let saved = &saved.expect("a checkpoint was written")["data"];
    assert_eq!((&saved["round"], &saved["step"]), (&0.into(), &3.into()));
    let anomaly = run.join("anomalies/1");
    let event = &rows(&anomaly.join("anomaly.json"))[0];
    assert_eq!(event["data"]["rule"], "numerical_instability");
    assert_eq!(event["env"], 1);
    let mut steps = rows(&anomaly.join("steps.jsonl"));
    steps.retain(|row| row["type"] == "env_step");
    let steps: Vec<_> = steps.iter().map(|row| &row["step"]).collect();
    assert_eq!(steps, [1, 1, 2, 2, 3, 3]);
    assert!(rows(&anomaly.join("updates.jsonl")).is_empty());
    let precision = &rows(&anomaly.join("precision.json"))[0];
    assert_eq!(precision["matmul_precision"], "highest");
    let nonfinite = precision["envs"][1]["nonfinite_batches"].as_u64();
    assert!(nonfinite > Some(0), "{precision}");
    let memory = &rows(&anomaly.join("memory.json"))[0];
    assert_eq!(memory["memory_bytes"].is_u64(), cfg!(target_os = "linux"), "{memory}");
    assert!(!run.join("anomalies/2").exists());
    // What is trained does not depend on it.
    assert_eq!(of_type(&lines, "env_step"), of_type(&NOTED.0, "env_step"));
}

#[test]
fn a_run_that_stops_for_an_anomaly_says_why_and_its_resume_does_not_repeat_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = play(&scenario("stop"), folder.path(), NOTHING);

    let run = directory(&report);
    assert_eq!(report.stopped_by, Some(StopRequest::Anomaly));
    assert_eq!(Checkpoints::of(&run).ids()[0], CheckpointId { round: 0, step: 3 });
    let stopped = lines(&run);
    let note = &of_type(&stopped, "note")[0]["data"]["text"];
    assert_eq!(note, "the run stops: numerical_instability (run.on_anomaly)");
    assert_eq!(of_type(&stopped, "run_finished")[0]["data"]["status"], "interrupted");

    let mut engine = resumed(&run, CheckpointName::Last, NOTHING, 1).expect("the run can be resumed");
    let report = engine.play();

    assert_eq!(report.stopped_by, None);
    let resumed = lines(&run);
    for kind in ["anomaly", "env_step"] {
        assert_eq!(of_type(&resumed, kind), of_type(&NOTED.0, kind));
    }
}
