//! What telemetry must never do, and what can be rebuilt from it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bevy_app::App;
use bevy_ecs::prelude::*;
use serde_json::Value;
use simic_engine::internals::env::{HostModel, SeedOptimizers};
use simic_engine::internals::record::RunDirectory;
use simic_engine::internals::scenario::TelemetryLevel;
use simic_engine::internals::torch::{HostSyncCounter, read_f32};
use simic_engine::prelude::*;

use crate::support::{assert_same_run, lines};

use crate::recorded::NOTHING;

/// A few batches of digits a step under a controller that orders anything legal.
fn scenario(name: &str, rounds: u32, n_envs: usize, max_steps: u32) -> String {
    format!(
        r#"(
            name: "{name}",
            preset: "manual", task: preset("digits_minimal", (batches_per_step: count(2))),
            run: (rounds: {rounds}, n_envs: {n_envs}, max_steps: {max_steps}),
            policy: (controller: "random"),
            lifecycle: (auto_forward: (g1: true, g2: true, g3: true), gates: (min_training_steps: 1, min_gradient_health: 0.0)),
        )"#
    )
}

/// Plays a scenario text into `out` and returns its run directory.
fn play(text: &str, out: &Path, level: TelemetryLevel, extend: fn(&mut App)) -> PathBuf {
    let level = format!("{level:?}").to_lowercase();
    let engine = Engine::builder()
        .set("telemetry.level", level)
        .with(extend)
        .recorded(out);
    let report = engine
        .from_ron(text)
        .unwrap_or_else(|problems| panic!("{problems}"))
        .play();
    assert!(report.failure.is_none(), "{:?}", report.failure);
    report.record.expect("the run was recorded").directory
}

const NOTES: &str = "parameters.txt";

/// Notes, at the end of every round, how often devices were read and what every parameter is.
fn noting_parameters(app: &mut App) {
    app.add_systems(
        RoundEnd,
        note_parameters
            .in_set(EngineSet::Record)
            .after(Work::RoundStats)
            .before(Work::TeardownRound),
    );
}

fn note_parameters(
    mut envs: Query<(&EnvId, &mut HostModel, &mut SeedOptimizers)>,
    folder: Res<RunDirectory>,
    syncs: Res<HostSyncCounter>,
) {
    let path = folder.path().join(NOTES);
    let mut notes = std::fs::read_to_string(&path).unwrap_or_default();
    notes += &format!("reads {}\n", syncs.count());
    let mut envs: Vec<_> = envs.iter_mut().collect();
    envs.sort_unstable_by_key(|(id, ..)| id.index);
    for (id, host, seeds) in &mut envs {
        let mut hash = blake3::Hasher::new();
        let mut add = |tensor| {
            for value in read_f32(tensor, &HostSyncCounter::default()).expect("parameters can be read") {
                hash.update(&value.to_le_bytes());
            }
        };
        host.0.get().params().all().for_each(|param| add(&param.tensor));
        for optimizer in seeds.0.iter_mut().flatten() {
            optimizer.get().params().iter().for_each(&mut add);
        }
        notes += &format!("env {} {}\n", id.index, hash.finalize());
    }
    std::fs::write(path, notes).expect("the run directory can be written");
}

#[test]
fn telemetry_changes_neither_parameters_nor_the_number_of_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = scenario("levels", 2, 4, 5);
    let notes = |level| {
        let run = play(&text, folder.path(), level, noting_parameters);
        std::fs::read_to_string(run.join(NOTES)).expect("parameters were noted")
    };

    let off = notes(TelemetryLevel::Off);
    let full = notes(TelemetryLevel::Full);
    let lifecycle = notes(TelemetryLevel::Lifecycle);

    assert_eq!(off.lines().count(), 2 * (1 + 4));
    assert_eq!(off, full);
    assert_eq!(off, lifecycle);
}

#[test]
fn at_level_off_only_the_ends_of_a_run_are_told() {
    let folder = tempfile::tempdir().expect("a folder");

    let run = play(&scenario("off", 1, 1, 3), folder.path(), TelemetryLevel::Off, NOTHING);

    let kinds: Vec<_> = lines(&run).iter().map(|line| line["type"].clone()).collect();
    assert_eq!(kinds, ["header", "run_started", "run_finished"]);
}

/// The record has what was used, not what was asked for: precision below `highest` is for CUDA devices.
#[test]
fn a_run_on_a_cpu_records_full_precision_with_any_setting() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = scenario("precise", 1, 1, 1).replace("rounds: 1,", "rounds: 1, matmul_precision: medium,");

    let run = play(&text, folder.path(), TelemetryLevel::Off, NOTHING);

    assert_eq!(lines(&run)[1]["data"]["matmul_precision"], "highest");
}

/// A host that never grew is its own control: playing it again would give the same result, so it is not.
#[test]
fn the_control_of_a_run_that_never_grew_is_its_own_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let grown = scenario("control", 1, 1, 20);
    let waiting = grown.replace("random", "wait");
    let control = |name: &str, text: &str| {
        let run = play(text, &folder.path().join(name), TelemetryLevel::Full, NOTHING);
        let lines = lines(&run);
        let of_type = |name: &str| lines.iter().filter(|line| line["type"] == name).count();
        let told = lines.iter().find(|line| line["type"] == "baseline_measured");
        (
            of_type("seed_germinated"),
            told.expect("it is measured")["data"].clone(),
        )
    };

    let (planted, played) = control("grown", &grown);
    let (none, told) = control("waiting", &waiting);

    assert!(planted > 0 && none == 0, "{planted} and {none} seeds");
    assert_eq!(told, played);
}

/// Every change of stage that a slot can make.
const LEGAL: [(&str, &str); 13] = [
    ("DORMANT", "GERMINATED"),
    ("GERMINATED", "TRAINING"),
    ("TRAINING", "BLENDING"),
    ("BLENDING", "HOLDING"),
    ("HOLDING", "BLENDING"),
    ("HOLDING", "COMMITTED"),
    ("GERMINATED", "PRUNED"),
    ("TRAINING", "PRUNED"),
    ("BLENDING", "PRUNED"),
    ("HOLDING", "PRUNED"),
    ("PRUNED", "EMBARGOED"),
    ("EMBARGOED", "RESETTING"),
    ("RESETTING", "DORMANT"),
];

/// A step's rows show what the controller saw: the stages before the step's own changes.
#[test]
fn the_timeline_of_every_slot_is_rebuilt_from_its_stage_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = play(
        &scenario("timeline", 1, 3, 45),
        folder.path(),
        TelemetryLevel::Full,
        NOTHING,
    );

    let mut stages: BTreeMap<(u64, String), String> = BTreeMap::new();
    let mut before_step: BTreeMap<u64, BTreeMap<String, String>> = BTreeMap::new();
    let mut step_of: BTreeMap<u64, u64> = BTreeMap::new();
    let mut visited = BTreeSet::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for event in lines(&run).iter().filter(|event| event["env"].is_u64()) {
        let env = event["env"].as_u64().expect("an env");
        let step = event["step"].as_u64().expect("events of an env have a step");
        if step_of.insert(env, step) != Some(step) {
            let now = stages
                .iter()
                .filter(|((owner, _), stage)| *owner == env && *stage != "DORMANT");
            before_step.insert(
                env,
                now.map(|((_, slot), stage)| (slot.clone(), stage.clone())).collect(),
            );
        }
        match event["type"].as_str() {
            Some("seed_stage_changed") => {
                let (from, to) = (text(&event["data"]["from"]), text(&event["data"]["to"]));
                let stage = stages
                    .entry((env, text(&event["slot"])))
                    .or_insert_with(|| "DORMANT".into());
                assert_eq!(*stage, from, "a gap in the timeline: {event}");
                assert!(LEGAL.contains(&(from.as_str(), to.as_str())), "{event}");
                visited.insert(to.clone());
                *stage = to;
            }
            Some("env_step") => {
                let rows = event["data"]["seeds"].as_array();
                let shown: BTreeMap<_, _> = rows
                    .into_iter()
                    .flatten()
                    .map(|row| (text(&row["slot"]), text(&row["stage"])))
                    .collect();
                assert_eq!(shown, before_step[&env], "env {env}, step {step}");
            }
            _ => {}
        }
    }

    // The comparison means something: seeds grew, blended and were removed again.
    for stage in [
        "TRAINING",
        "BLENDING",
        "HOLDING",
        "PRUNED",
        "EMBARGOED",
        "RESETTING",
        "DORMANT",
    ] {
        assert!(visited.contains(stage), "no slot came to {stage}: {visited:?}");
    }
}

#[test]
fn a_new_target_of_alpha_is_told_with_its_ramp() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"(
        name: "retarget",
        preset: "manual", task: preset("digits_minimal", (batches_per_step: count(2))),
        run: (rounds: 1, n_envs: 1, max_steps: 20),
        lifecycle: (auto_forward: (g1: true, g2: true, g3: true),
                    gates: (min_training_steps: 1, min_gradient_health: 0.0)),
        policy: (controller: "schedule", schedule: (entries: [
            (step: 1, command: germinate(slot: "r0c0", blueprint: "norm", style: "linear_add", tempo: "fast", target: "full")),
            (step: 19, command: set_alpha_target(slot: "r0c0", style: "linear_add", target: "half", speed: "slow", curve: "sigmoid")),
        ])),
    )"#;

    let run = play(text, folder.path(), TelemetryLevel::Lifecycle, NOTHING);

    let events = lines(&run);
    let ramps: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "alpha_ramp_started")
        .collect();
    assert_eq!(ramps.len(), 1, "{events:#?}");
    let data = &ramps[0]["data"];
    assert_eq!(
        (&data["from"], &data["to"], &data["steps"]),
        (&1.0.into(), &0.5.into(), &8.into())
    );
}

#[test]
fn two_runs_in_one_process_share_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let texts = [scenario("one", 2, 2, 8), scenario("other", 1, 3, 12)];
    let root = |name: &str| folder.path().join(name);
    let level = TelemetryLevel::Full;

    let together = std::thread::scope(|scope| {
        let runs = texts
            .each_ref()
            .map(|text| scope.spawn(|| play(text, &root("together"), level, NOTHING)));
        runs.map(|run| run.join().expect("the run does not panic"))
    });
    let alone = texts.each_ref().map(|text| play(text, &root("alone"), level, NOTHING));

    for (together, alone) in together.iter().zip(&alone) {
        assert_same_run(together, alone);
        let numbers: Vec<_> = lines(together).iter().filter_map(|line| line["seq"].as_u64()).collect();
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    }
    assert_ne!(together[0], together[1]);
}
