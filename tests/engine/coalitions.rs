//! Measurements of many seeds, and their times; ten slots from the policy to a resumed run.

use std::path::Path;

use serde_json::{Value, json};
use simic_engine::internals::checkpoint::CheckpointName;
use simic_engine::internals::run::RoundLimit;
use simic_engine::internals::seed::ContributionTrack;
use simic_engine::prelude::*;

use crate::recorded::{NOTHING, directory, events, play, resumed};
use crate::support::builder;
use crate::training_loop::support::Notes;

/// The preset with ten slots on made-up images, a little data.
const TEN: &str = r#""cifar_deep_multichannel", (
    batch_size: 32, batches_per_step: count(1), max_steps: 4, data: synth_images((train: 64, val: 256, test: 16)),
)"#;

/// Committed seeds in the first `standing` slots; every seed plays.
fn scenario(preset: &str, (standing, blueprint): (usize, &str), attribution: &str, rest: &str) -> String {
    let seed = |at: usize| format!(r#"(slot: "r{}c{}", blueprint: "{blueprint}"), "#, at / 5, at % 5);
    let seeds: String = (0..standing).map(seed).collect();
    format!(
        r#"(
            name: "seeds",
            preset: "manual", task: preset({preset}),
            lifecycle: (max_seeds: 0, auto_forward: true),
            initial_topology: seeds([{seeds}]),
            attribution: (include_committed: true, {attribution}),
            {rest}
        )"#
    )
}

const ONE_ENV: &str = r#"run: (rounds: 1, n_envs: 1), policy: (controller: "wait")"#;

/// Measurements of a run, step by step.
fn matrices(text: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    events(&directory(&play(text, folder.path(), NOTHING)), "counterfactual_matrix")
}

#[test]
#[ignore = "long tier"]
fn shapley_values_of_ten_seeds_are_sampled_at_every_step_and_add_up() {
    let text = scenario(TEN, (10, "norm"), "strategy: permutations", ONE_ENV);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = directory(&play(&text, folder.path(), NOTHING));

    let shares = events(&run, "shapley");
    assert_eq!(shares.len(), 4, "one a step");
    for share in shares {
        let values = share["data"]["values"].as_array().expect("a list");
        assert_eq!(values.len(), 10);
        // Ten pairs of orders.
        let is_measured = |value: &Value| value["n"] == 10 && value["std"].is_f64();
        assert!(values.iter().all(is_measured), "{share}");
    }
}

/// Contributions of the first seed, step by step.
type Tracks = Vec<ContributionTrack>;

fn note(envs: Query<&SeedSlots>, mut notes: ResMut<Notes<Tracks>>) {
    let slots = envs.single().expect("one env");
    let seed = slots.0[0].record.as_ref().expect("a seed stands there");
    notes.0.push(seed.contribution);
}

/// The change of three steps counts as three steps'.
#[test]
#[ignore = "long tier"]
fn seeds_that_do_not_change_are_measured_at_the_first_and_the_last_step_and_their_velocity_knows() {
    const DIGITS: &str =
        r#""digits_impaired", (batches_per_step: count(4), val_batches_per_step: count(1), max_steps: 4)"#;
    let with = |cadence: &str| {
        let rest = format!("{ONE_ENV}, reward: loss()");
        scenario(DIGITS, (2, "conv_light"), &format!("cadence: {cadence}"), &rest)
    };
    let always = matrices(&with("every_step"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let engine = builder().threads(2).recorded(folder.path());
    let engine = engine.from_ron(&with("on_change"));
    let mut engine = engine.expect("the scenario is sound");
    let note = note.after(Work::Attribute).before(Work::TrackSeeds);
    engine
        .app_mut()
        .init_resource::<Notes<Tracks>>()
        .add_systems(Assess, note);
    let seldom = events(&directory(&engine.play()), "counterfactual_matrix");

    let at = |matrices: &[Value]| json!(matrices.iter().map(|matrix| &matrix["step"]).collect::<Vec<_>>());
    assert_eq!((at(&always), at(&seldom)), (json!([1, 2, 3, 4]), json!([1, 4])));
    for (one, other) in [(&always[0], &seldom[0]), (&always[3], &seldom[1])] {
        assert_eq!(one["data"]["rows"], other["data"]["rows"]);
    }
    let seen = &engine.world().resource::<Notes<Tracks>>().0;
    let ages: Vec<_> = seen.iter().map(|track| track.age).collect();
    assert_eq!(ages, [0, 1, 2, 0].map(Some));
    assert_eq!((seen[2].value, seen[2].velocity), (seen[0].value, 0.0));
    let change = seen[3].value.expect("measured") - seen[0].value.expect("measured");
    assert!((seen[3].velocity - 0.3 * change / 3.0).abs() < 1e-9, "{seen:?}");
}

/// A resumed run of ten slots equals an uninterrupted one: policy, masks, observations, plans.
#[test]
#[ignore = "long tier"]
fn ten_slots_go_through_policy_plans_and_a_resumed_run() {
    let learns = r#"run: (rounds: 2, n_envs: 2), policy: (controller: "actor_critic")"#;
    let text = scenario(TEN, (8, "norm"), "strategy: permutations", learns);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = directory(&play(&text, &folder.path().join("whole"), NOTHING));
    let one_round = |app: &mut App| _ = app.insert_resource(RoundLimit(1));
    let halves = directory(&play(&text, &folder.path().join("halves"), one_round));
    let mut resumed = resumed(&halves, CheckpointName::Last, NOTHING, 2).expect("the run can be resumed");
    directory(&resumed.play());

    let weights = |run: &Path| std::fs::read(run.join("checkpoints/round-000002/policy/policy.safetensors"));
    let [one, other] = [&whole, &halves].map(|run| weights(run).expect("the policy was saved"));
    assert!(one == other, "the weights differ");
    // Lines are numbered and dated, which a resumed run does otherwise.
    let lines_of = |run: &Path, kind: &str| -> Vec<Value> {
        let lines = events(run, kind).into_iter().filter(|line| line["round"] == 1);
        lines.map(|line| line["data"].clone()).collect()
    };
    let played = lines_of(&whole, "decision");
    assert_eq!(played.len(), 8, "two envs, four steps");
    assert_eq!(played, lines_of(&halves, "decision"));
    assert_eq!(lines_of(&whole, "shapley"), lines_of(&halves, "shapley"));
}
