//! Limits of telemetry: what it must never do, and what can be rebuilt from it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use simic_engine::internals::env::SeedOptimizers;
use simic_engine::internals::record::RunDirectory;
use simic_engine::internals::telemetry::TelemetryOutbox;
use simic_engine::internals::torch::HostSyncCounter;
use simic_engine::prelude::*;

use crate::recorded::{NOTHING, directory, events};
use crate::support::{assert_same_run, lines};
use crate::training_loop::support::{bits, host_bits};

/// A few batches of digits a step under a controller that orders anything legal.
fn scenario(name: &str, rounds: u32, n_envs: usize, max_steps: u32) -> String {
    format!(
        r#"(
            name: "{name}",
            preset: "manual", task: preset("digits_minimal", (batches_per_step: count(2))),
            run: (rounds: {rounds}, n_envs: {n_envs}, max_steps: {max_steps}),
            policy: (controller: "random"),
            lifecycle: (auto_forward: true, gates: (min_training_steps: 1, min_gradient_health: 0.0)),
        )"#
    )
}

/// Plays a scenario text into `out`, and returns its run directory.
fn play(text: &str, out: &Path, extend: fn(&mut App)) -> PathBuf {
    directory(&crate::recorded::play(text, out, extend))
}

const NOTES: &str = "parameters.txt";

/// Notes, at the end of every round, how often devices were read and what every parameter is.
fn noting_parameters(app: &mut App) {
    let note = note_parameters.in_set(EngineSet::Record).after(Work::RoundStats);
    app.add_systems(RoundEnd, note.before(Work::TeardownRound));
}

fn note_parameters(
    mut envs: Query<(&EnvId, &mut HostModel, &mut SeedOptimizers)>,
    folder: Res<RunDirectory>,
    syncs: Res<HostSyncCounter>,
) {
    let path = folder.path().join(NOTES);
    let mut notes = std::fs::read_to_string(&path).unwrap_or_default();
    notes += &format!("reads {}\n", syncs.count());
    for (id, mut host, mut seeds) in envs.iter_mut().sort_unstable::<&EnvId>() {
        let seeds = seeds.0.iter_mut().flatten();
        let seeds: Vec<_> = seeds.map(|optimizer| bits(optimizer.get().params())).collect();
        notes += &format!("env {} {:?} {seeds:?}\n", id.index, host_bits(&mut host));
    }
    std::fs::write(path, notes).expect("the run directory can be written");
}

/// The same with no event on its way to the record.
fn silent(app: &mut App) {
    app.insert_resource(TelemetryOutbox::new(false));
    noting_parameters(app);
}

#[test]
fn telemetry_changes_neither_parameters_nor_the_number_of_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    // What was used is recorded, not what was asked for: precision below `highest` is for CUDA devices.
    let text = scenario("silent", 2, 4, 5).replace("rounds: 2,", "rounds: 2, matmul_precision: medium,");
    let [noting, silent] = [noting_parameters, silent as fn(&mut App)].map(|extend| play(&text, folder.path(), extend));

    let notes = |run: &PathBuf| std::fs::read_to_string(run.join(NOTES)).expect("notes");
    assert_eq!(notes(&noting).lines().count(), 2 * (1 + 4));
    assert_eq!(notes(&noting), notes(&silent));
    let kinds: Vec<_> = lines(&silent).iter().map(|line| line["type"].clone()).collect();
    assert_eq!(kinds, ["header", "run_finished"]);
    assert_eq!(lines(&noting)[1]["data"]["matmul_precision"], "highest");
}

/// A host that never grew is its own control: playing it again would give the same result, so it is not.
#[test]
fn the_control_of_a_run_that_never_grew_is_its_own_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let grown = scenario("control", 1, 1, 20);
    let waiting = grown.replace("random", "wait");
    let control = |name: &str, text: &str| {
        let run = play(text, &folder.path().join(name), NOTHING);
        let measured = events(&run, "baseline_measured").remove(0);
        (events(&run, "seed_germinated").len(), measured["data"].clone())
    };

    let (planted, played) = control("grown", &grown);
    let (none, waited) = control("waiting", &waiting);

    assert!(planted > 0 && none == 0, "{planted} and {none} seeds");
    assert_eq!(waited, played);
}

/// A step's rows show what the controller saw: the stages before the step's own changes.
#[test]
fn the_timeline_of_every_slot_is_rebuilt_from_its_stage_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = play(&scenario("timeline", 1, 3, 45), folder.path(), NOTHING);

    /// By slot.
    type Stages = BTreeMap<String, String>;
    // Of an env: its step, the stages now, and before the step.
    let mut envs: BTreeMap<u64, (u64, Stages, Stages)> = BTreeMap::new();
    let mut visited = BTreeSet::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for event in lines(&run).iter().filter(|event| event["env"].is_u64()) {
        let number = |field: &str| event[field].as_u64().expect("events of an env have a step");
        let (step, stages, before) = envs.entry(number("env")).or_default();
        if *step != number("step") {
            (*step, *before) = (number("step"), stages.clone());
        }
        match event["type"].as_str() {
            Some("seed_stage_changed") => {
                let to = text(&event["data"]["to"]);
                visited.insert(to.clone());
                let stood = stages.insert(text(&event["slot"]), to);
                let stood = stood.unwrap_or_else(|| "DORMANT".into());
                assert_eq!(event["data"]["from"], stood, "a gap in the timeline: {event}");
                stages.retain(|_, stage| stage != "DORMANT");
            }
            Some("env_step") => {
                let rows = event["data"]["seeds"].as_array().into_iter().flatten();
                let shown: Stages = rows.map(|row| (text(&row["slot"]), text(&row["stage"]))).collect();
                assert_eq!(shown, *before, "{event}");
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
fn a_new_target_of_alpha_is_recorded_with_its_ramp() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"(
        name: "retarget",
        preset: "manual", task: preset("digits_minimal", (batches_per_step: count(2))),
        run: (rounds: 1, n_envs: 1, max_steps: 20),
        lifecycle: (auto_forward: true,
                    gates: (min_training_steps: 1, min_gradient_health: 0.0)),
        policy: (controller: "schedule", schedule: (entries: [
            (step: 1, command: germinate(slot: "r0c0", blueprint: "norm", style: "linear_add", tempo: "fast", target: "full")),
            (step: 19, command: set_alpha_target(slot: "r0c0", style: "linear_add", target: "half", speed: "slow", curve: "sigmoid")),
        ])),
    )"#;

    let run = play(text, folder.path(), NOTHING);

    let ramps = events(&run, "alpha_ramp_started");
    assert_eq!(ramps.len(), 1, "{ramps:#?}");
    let ramp = ["from", "to", "steps"].map(|field| &ramps[0]["data"][field]);
    assert_eq!(ramp, [&json!(1.0), &json!(0.5), &json!(8)]);
}

#[test]
fn two_runs_in_one_process_share_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let texts = [scenario("one", 2, 2, 8), scenario("other", 1, 3, 12)];
    let root = |name: &str| folder.path().join(name);
    let together = std::thread::scope(|scope| {
        let runs = texts
            .each_ref()
            .map(|text| scope.spawn(|| play(text, &root("together"), NOTHING)));
        runs.map(|run| run.join().expect("the run does not panic"))
    });
    let alone = texts.each_ref().map(|text| play(text, &root("alone"), NOTHING));

    for (together, alone) in together.iter().zip(&alone) {
        assert_same_run(together, alone);
        let numbers: Vec<_> = lines(together).iter().filter_map(|line| line["seq"].as_u64()).collect();
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    }
    assert_ne!(together[0], together[1]);
}
