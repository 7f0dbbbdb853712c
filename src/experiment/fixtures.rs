//! Experiments with made-up values.

use serde_json::Value;

use super::{ArmDesign, ArmResult, Budget, Design, Record, ReplicateResult, launch_order};
use crate::compare::{EpisodeOutcome, RoundPoint, TrainingRecord};
use crate::engine::Prepared;
use crate::scenario::Catalog;
use crate::telemetry::BigInteger;

/// The design of a scenario whose `experiment` has these fields.
pub fn design(fields: &str) -> Design {
    let text = format!(
        r#"(
            name: "made_up",
            task: preset("digits_minimal"),
            run: (rounds: 3, n_envs: 2, max_steps: 4),
            policy: (controller: "wait"),
            experiment: ab(({fields})),
        )"#
    );
    let prepared = Prepared::from_ron("made_up.ron", &text, &[], &Catalog::default()).unwrap();
    super::Plan::new(&prepared, Default::default()).unwrap().design
}

/// A training that was scored by one episode of this test accuracy.
pub fn training(seed: u64, test_accuracy: f64) -> TrainingRecord {
    TrainingRecord {
        run_id: "made_up".into(),
        scenario: "made_up".into(),
        task: "digits_minimal".into(),
        controller: "wait".into(),
        seed: BigInteger(seed),
        rounds: 3,
        is_complete: true,
        is_evaluated: true,
        episodes: vec![EpisodeOutcome {
            seed: BigInteger(10_007),
            round: 3,
            env: 0,
            accuracy: Some(test_accuracy + 1.0),
            committed_accuracy: Some(test_accuracy + 0.5),
            test_accuracy: Some(test_accuracy),
            loss: Some(3.0 - test_accuracy / 50.0),
            test_loss: Some(3.1 - test_accuracy / 50.0),
            rent: Some(2.0),
            reward: 0.0,
            param_ratio: 1.25,
            rollbacks: 0,
            compute: None,
            decisions: None,
        }],
        curve: vec![RoundPoint {
            round: 0,
            env_steps: 24,
            seconds: 1.0,
            accuracy: test_accuracy,
            accuracy_minus_rent: None,
            loss: None,
            param_ratio: 1.25,
            gmacs: None,
        }],
    }
}

/// One replicate after the other, `values[arm][replicate]` being what the arm came to.
pub fn record(design: Design, values: &[&[f64]]) -> Record {
    let count = values[0].len() as u32;
    let arm = |arm: &ArmDesign, index: usize, replicate: u32| ArmResult {
        id: arm.id.clone(),
        seed: BigInteger(design.arm_seed(replicate, index)),
        devices: design.arm_devices(replicate, index),
        learns: false,
        budget: Budget {
            episodes: 6,
            env_steps: 24,
            updates: 0,
        },
        data_hash: "d1".into(),
        training: training(design.arm_seed(replicate, index), values[index][replicate as usize]),
    };
    let replicate = |replicate: u32| ReplicateResult {
        replicate,
        failure: None,
        orders: (0..3)
            .map(|round| launch_order(design.replicate_seed(replicate), round, values.len()))
            .collect(),
        arms: design
            .arms
            .iter()
            .enumerate()
            .map(|(index, known)| arm(known, index, replicate))
            .collect(),
        fingerprint: Value::Null,
    };
    Record {
        replicates: (0..count).map(replicate).collect(),
        design,
    }
}
