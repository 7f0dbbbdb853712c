//! What is measured of many seeds, when, and within which limits; ten slots from the policy to a resumed run.

use std::path::Path;

use bevy_ecs::prelude::*;
use serde_json::Value;
use simic_engine::internals::checkpoint::CheckpointName;
use simic_engine::internals::engine::RunReport;
use simic_engine::internals::env::SeedSlots;
use simic_engine::internals::run::RoundLimit;
use simic_engine::internals::seed::ContributionTrack;
use simic_engine::prelude::*;

use crate::recorded::{NOTHING, resumed};
use crate::support::{engine, lines};

const ALL_SLOTS: [&str; 10] = [
    "r0c0", "r0c1", "r0c2", "r0c3", "r0c4", "r1c0", "r1c1", "r1c2", "r1c3", "r1c4",
];

/// The preset with ten slots on made-up images, committed seeds in the first `standing` of them, a little data; every seed plays.
fn scenario(standing: usize, attribution: &str, rest: &str) -> String {
    let seeds = ALL_SLOTS[..standing].iter();
    let seeds: Vec<String> = seeds
        .map(|slot| format!(r#"(slot: "{slot}", blueprint: "norm")"#))
        .collect();
    format!(
        r#"(
            name: "ten",
            preset: "manual", task: preset("cifar_deep_multichannel", (
                batch_size: 32, batches_per_step: count(1), max_steps: 4,
                data: synth_images((train: 64, val: 256, test: 16)),
            )),
            lifecycle: (max_seeds: 0, auto_forward: (g1: true, g2: true, g3: true)),
            initial_topology: seeds([{}]),
            attribution: (include_committed: true, {attribution}),
            {rest}
        )"#,
        seeds.join(", ")
    )
}

const ONE_ENV: &str = r#"run: (rounds: 1, n_envs: 1), policy: (controller: "wait")"#;

fn recorded(text: &str) -> (tempfile::TempDir, Vec<Value>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let report = crate::recorded::play(text, folder.path(), |_| {});
    assert!(report.failure.is_none(), "{:?}", report.failure);
    let lines = lines(directory(&report));
    (folder, lines)
}

fn directory(report: &RunReport) -> &Path {
    &report.record.as_ref().expect("the run was recorded").directory
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// Mask, samples that were right, loss of each row of a matrix.
fn rows(matrix: &Value) -> Vec<(u64, u64, f64)> {
    let rows = matrix["data"]["rows"].as_array().expect("rows");
    let whole = |value: &Value| value.as_u64().expect("a number");
    let row = |row: &Value| (whole(&row[0]), whole(&row[1]), row[2].as_f64().expect("a loss"));
    rows.iter().map(row).collect()
}

fn dropped(matrix: &Value) -> Vec<u64> {
    let masks = matrix["data"]["dropped"].as_array().into_iter().flatten();
    masks.map(|mask| mask.as_u64().expect("a mask")).collect()
}

#[test]
fn shapley_values_of_ten_seeds_are_sampled_at_every_step_and_add_up() {
    let (_folder, lines) = recorded(&scenario(
        10,
        "strategy: permutations, shapley_permutations: 6",
        ONE_ENV,
    ));

    let shares = of_type(&lines, "shapley");
    assert_eq!(shares.len(), 4, "one a step");
    for share in shares {
        let data = &share["data"];
        let values = data["values"].as_array().expect("a list");
        assert_eq!(values.len(), 10);
        assert!(
            values.iter().all(|value| value["n"] == 3),
            "three pairs of orders: {data}"
        );
        assert!(values.iter().all(|value| value["std"].is_f64()), "{data}");
    }
    for matrix in of_type(&lines, "counterfactual_matrix") {
        assert!(dropped(matrix).is_empty());
    }
}

#[test]
fn a_single_pair_of_orders_has_no_standard_error() {
    let (_folder, lines) = recorded(&scenario(8, "strategy: permutations, shapley_permutations: 2", ONE_ENV));

    for share in of_type(&lines, "shapley") {
        let values = share["data"]["values"].as_array().expect("a list");
        assert!(values.iter().all(|value| value.get("std").is_none()), "{share}");
    }
}

#[test]
fn no_more_configurations_are_measured_than_allowed_and_the_others_are_told() {
    let (_folder, all) = recorded(&scenario(5, "", ONE_ENV));
    let (_folder, few) = recorded(&scenario(5, "max_configs: 22", &format!("{ONE_ENV}, reward: loss()")));

    let last = |lines: &[Value]| of_type(lines, "counterfactual_matrix").last().copied().cloned();
    let (all, few) = (last(&all).expect("a matrix"), last(&few).expect("a matrix"));
    let (all_rows, few_rows) = (rows(&all), rows(&few));
    assert_eq!((all_rows.len(), few_rows.len()), (32, 22));
    assert_eq!(dropped(&few).len(), 10);
    assert!(
        dropped(&few).iter().all(|mask| mask.count_ones() == 3),
        "pairs are kept: {few}"
    );
    for row in &few_rows {
        let same = all_rows.iter().find(|other| other.0 == row.0).expect("it was measured");
        assert_eq!(same.1, row.1, "mask {:#b}", row.0);
    }
}

#[test]
fn seeds_that_do_not_change_are_measured_at_the_first_and_the_last_step() {
    let rest = format!("{ONE_ENV}, reward: loss()");
    let (_folder, always) = recorded(&scenario(2, "cadence: every_step", &rest));
    let (_folder, lines) = recorded(&scenario(2, "cadence: on_change", &rest));

    let at = |lines: &[Value]| -> Vec<u64> {
        let matrices = of_type(lines, "counterfactual_matrix");
        matrices.iter().filter_map(|matrix| matrix["step"].as_u64()).collect()
    };
    assert_eq!(at(&always), [1, 2, 3, 4]);
    assert_eq!(at(&lines), [1, 4]);
    let matrices = |lines: &[Value]| -> Vec<Value> {
        let matrices = of_type(lines, "counterfactual_matrix");
        matrices.iter().map(|matrix| matrix["data"]["rows"].clone()).collect()
    };
    let (always, lines) = (matrices(&always), matrices(&lines));
    assert_eq!(
        [&always[0], &always[3]],
        [&lines[0], &lines[1]],
        "what is measured is the same"
    );
}

/// What the env's seed was worth, step by step.
#[derive(Resource, Default)]
struct Tracks(Vec<ContributionTrack>);

fn note(envs: Query<&SeedSlots>, mut notes: ResMut<Tracks>) {
    let slots = envs.single().expect("one env");
    let seed = slots.0[0].record.as_ref().expect("a seed stands there");
    notes.0.push(seed.contribution);
}

/// The change of three steps counts as three steps'.
#[test]
fn the_velocity_of_a_contribution_knows_how_long_the_last_one_is_ago() {
    let text = scenario(1, "cadence: on_change", &format!("{ONE_ENV}, reward: loss()"));
    let mut engine = engine(&text);
    engine
        .app_mut()
        .init_resource::<Tracks>()
        .add_systems(Assess, note.after(Work::Attribute).before(Work::TrackSeeds));
    engine.run().expect("the run succeeds");

    let seen = &engine.world().resource::<Tracks>().0;
    let ages: Vec<_> = seen.iter().map(|track| track.age).collect();
    assert_eq!(ages, [0, 1, 2, 0].map(Some));
    assert_eq!((seen[2].value, seen[2].velocity), (seen[0].value, 0.0));
    let change = seen[3].value.expect("measured") - seen[0].value.expect("measured");
    assert!((seen[3].velocity - 0.3 * change / 3.0).abs() < 1e-9, "{seen:?}");
}

/// What a resumed run of ten slots does equals what an uninterrupted one does: policy, masks, observations, plans.
#[test]
fn ten_slots_go_through_policy_plans_and_a_resumed_run() {
    let learns = r#"run: (rounds: 2, n_envs: 2), policy: (controller: "actor_critic", preset: "lstm_small")"#;
    let text = scenario(8, "strategy: permutations, shapley_permutations: 4", learns);
    let (whole, halves) = (
        tempfile::tempdir().expect("a temporary folder"),
        tempfile::tempdir().expect("a temporary folder"),
    );

    let report = crate::recorded::play(&text, whole.path(), |_| {});
    assert!(report.failure.is_none(), "{:?}", report.failure);
    let mut first_half = Engine::builder()
        .threads(2)
        .recorded(halves.path())
        .from_ron(&text)
        .expect("the scenario is sound");
    first_half.world_mut().insert_resource(RoundLimit(1));
    let stopped = first_half.play();
    assert!(stopped.failure.is_none(), "{:?}", stopped.failure);
    drop(first_half);
    let mut resumed = resumed(directory(&stopped), CheckpointName::Last, NOTHING, 2).expect("the run can be resumed");
    let resumed = resumed.play();
    assert!(resumed.failure.is_none(), "{:?}", resumed.failure);

    let weights = |run: &Path| {
        let file = run.join("checkpoints/round-000002/policy/policy.safetensors");
        std::fs::read(file).expect("the policy was saved")
    };
    assert!(
        weights(directory(&report)) == weights(directory(&stopped)),
        "the weights differ"
    );
    let decisions = |run: &Path| -> Vec<Value> {
        let lines = lines(run);
        let decisions = of_type(&lines, "decision").into_iter();
        let decisions = decisions.filter(|line| line["round"] == 1);
        decisions.map(|line| line["data"].clone()).collect()
    };
    let played = decisions(directory(&report));
    assert_eq!(played.len(), 8, "two envs, four steps");
    assert_eq!(played, decisions(directory(&stopped)));
}

/// Before anything is allocated: what it takes, and how many envs would fit.
#[test]
fn a_run_that_cannot_fit_into_memory_is_refused_with_what_would_fit() {
    let text = r#"(
        preset: "manual", task: preset("synth_scale"),
        run: (n_envs: 2048, memory_limit_gib: 4.0),
        policy: (controller: "wait"),
    )"#;

    let refused = Engine::builder()
        .threads(2)
        .from_ron(text)
        .err()
        .expect("it is refused");

    let refused = refused.to_string();
    assert!(refused.contains("the run needs up to "), "{refused}");
    assert!(refused.contains("run.memory_limit_gib allows 4.0 GiB"), "{refused}");
    assert!(refused.contains("seeds "), "{refused}");
    let (_, rest) = refused
        .split_once("it would fit with run.n_envs: ")
        .expect("what would fit is told");
    let envs: usize = rest
        .split(';')
        .next()
        .and_then(|number| number.parse().ok())
        .expect("a number");
    let smaller = text.replace("2048", &envs.to_string());
    assert!(
        Engine::builder().threads(2).from_ron(&smaller).is_ok(),
        "{envs} envs fit"
    );
}
