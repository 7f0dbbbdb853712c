//! The smallest of everything runs through the same loop.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::internals::validation::TestResult;
use simic_engine::prelude::*;

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
            preset: "manual", task: preset("digits_minimal", (
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
        r#"(name: "test", preset: "manual", task: {MINIMAL}, policy: {WAIT}, run: (rounds: 2, n_envs: 1, max_steps: 2))"#
    ));

    let is_tested: Vec<bool> = numbers.test.iter().map(Option::is_some).collect();
    assert_eq!(is_tested, [false, true, false, true]);
}

/// A user's data may be too precious for a test part, or a class too small for one.
#[test]
fn a_task_without_a_test_part_plays_its_episodes_to_the_end_untested() {
    let numbers = numbers(&scenario(
        r#"custom((
            name: "untested", classes: 10, data: digits,
            split: (seed: 0, val_permille: 200, test_permille: 0),
            normalise: auto, augment: None,
            host: cnn((in_channels: 1, base_channels: 2, n_blocks: 3, kernel_size: 1, pool_layers: 0, input_hw: 8)),
            slots: ["r0c0"], max_seeds: 1, batch_size: 64, batches_per_step: count(2), val_batch_size: None,
            val_batches_per_step: full, max_steps: 2,
            host_opt: sgd(lr: 0.01, momentum: 0.9, weight_decay: 0.0),
            seed_opt: sgd(lr: 0.01, momentum: 0.9, weight_decay: 0.0),
            max_grad_norm: Some(1.0), label_smoothing: 0.0,
            success_accuracy: 80.0,
        ))"#,
        1,
        2,
        WAIT,
    ));

    assert_eq!(numbers.val.len(), 2);
    assert_eq!(numbers.test, [None, None]);
}
