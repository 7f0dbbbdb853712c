//! The smallest of everything runs through the same loop.

use simic_engine::prelude::*;

use super::support::*;
use crate::recorded::NOTHING;

/// Metrics of every env and step, and of the committed network at the end of an episode.
type Numbers = Vec<(TrainMetrics, ValMetrics, Option<(f64, f64)>)>;

fn note(envs: Query<(&TrainMetrics, &ValMetrics, &TestResult)>, mut numbers: ResMut<Notes<Numbers>>) {
    numbers
        .0
        .extend(envs.iter().map(|(train, val, test)| (*train, *val, test.0)));
}

fn numbers(text: &str) -> Numbers {
    noted(app(text, NOTHING), note)
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

    let [(train, val, Some(_))] = numbers[..] else {
        panic!("{numbers:?}")
    };
    assert!(train.loss.is_finite() && val.loss.is_finite());
    assert!([0.0, 100.0].contains(&val.accuracy_percent));
}

#[test]
fn a_last_validation_batch_of_one_sample_weighs_as_one_sample() {
    // 355 validation samples: at once, and as 354 and 1.
    let [whole, split] = [355, 354].map(|size| {
        let task = format!(r#"preset("digits_minimal", (batches_per_step: count(2), val_batch_size: {size}))"#);
        numbers(&scenario(&task, 1, 2, WAIT))
    });

    assert_eq!(whole.len(), 2);
    for ((train, whole, _), (same_train, split, _)) in whole.iter().zip(&split) {
        assert_eq!(train, same_train);
        assert_eq!(whole.accuracy_percent, split.accuracy_percent);
        assert!((whole.loss - split.loss).abs() < 1e-6);
    }
}

/// A user's data may be too precious for a test part, or a class too small for one.
#[test]
fn an_episode_is_tested_at_its_last_step_and_at_no_other_and_only_where_there_is_a_test_part() {
    let untested = MINIMAL.replace(
        "(batches",
        "(split: (seed: 0, val_permille: 200, test_permille: 0), batches",
    );
    for (task, is_last_tested) in [(MINIMAL, true), (untested.as_str(), false)] {
        let numbers = numbers(&scenario(task, 1, 2, WAIT).replace("rounds: 1", "rounds: 2"));

        let is_tested: Vec<bool> = numbers.iter().map(|(.., test)| test.is_some()).collect();
        assert_eq!(is_tested, [false, is_last_tested, false, is_last_tested], "{task}");
    }
}
