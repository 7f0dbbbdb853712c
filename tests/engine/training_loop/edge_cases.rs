//! The smallest of everything runs through the same loop.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::prelude::*;
use simic_engine::validation::TestResult;

use super::support::*;

/// Metrics of every env and step, and of the committed network at the end of an episode.
#[derive(Resource, Default)]
struct Numbers {
    train: Vec<TrainMetrics>,
    val: Vec<ValMetrics>,
    test: Vec<Option<(f64, f64)>>,
}

fn note(envs: Query<(&TrainMetrics, &ValMetrics, &TestResult)>, mut numbers: ResMut<Numbers>) {
    for (train, val, test) in &envs {
        numbers.train.push(*train);
        numbers.val.push(*val);
        numbers.test.push(test.0);
    }
}

fn numbers(text: &str) -> Numbers {
    play(app(text, |app: &mut App| {
        app.init_resource::<Numbers>()
            .add_systems(StepEnd, note.after(Work::EmitStep));
    }))
}

#[test]
fn one_env_one_step_one_batch_of_one_sample_in_one_slot() {
    let numbers = numbers(
        r#"(
            name: "test", policy: (controller: "heuristic"), lifecycle: (slots: Some(["r0c0"])),
            task: preset("digits_minimal", (
                batch_size: 1, batches_per_step: count(1), val_batch_size: 1, val_batches_per_step: count(1),
            )),
            run: (rounds: 1, n_envs: 1, max_steps: 1),
        )"#,
    );

    assert_eq!(numbers.train.len(), 1);
    assert!(numbers.train[0].loss.is_finite() && numbers.val[0].loss.is_finite());
    assert!([0.0, 100.0].contains(&numbers.val[0].accuracy_percent));
    assert!(numbers.test[0].is_some());
}

#[test]
fn a_last_validation_batch_of_one_sample_weighs_as_one_sample() {
    let validated_in = |val_batch_size: usize| {
        let task =
            format!(r#"preset("digits_minimal", (batches_per_step: count(2), val_batch_size: {val_batch_size}))"#);
        numbers(&scenario(&task, 1, 2, WAIT))
    };

    // 355 validation samples: at once, and as 354 and 1.
    let (whole, split) = (validated_in(355), validated_in(354));

    assert_eq!(whole.train, split.train);
    for (whole, split) in whole.val.iter().zip(&split.val) {
        assert_eq!(whole.accuracy_percent, split.accuracy_percent);
        assert!((whole.loss - split.loss).abs() < 1e-6);
    }
}

#[test]
fn an_episode_is_tested_at_its_last_step_and_at_no_other() {
    let numbers = numbers(&format!(
        r#"(name: "test", task: {MINIMAL}, policy: {WAIT}, run: (rounds: 2, n_envs: 1, max_steps: 2))"#
    ));

    let is_tested: Vec<bool> = numbers.test.iter().map(Option::is_some).collect();
    assert_eq!(is_tested, [false, true, false, true]);
}
