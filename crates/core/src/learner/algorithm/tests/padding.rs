//! What padding must not change.

use super::tasks::CueTask;
use super::training::{Training, small_config};
use super::{cue, read};
use crate::learner::algorithm::LearnerSchedules;
use crate::learner::algorithm::finalize::finalize;
use crate::learner::algorithm::measurements::Scalar;
use crate::learner::algorithm::optimizer::PolicyOptimizer;
use crate::learner::algorithm::sequences::{Sequence, SequenceBatch, sequences};
use crate::learner::algorithm::update::Update;
use crate::policy::TrainablePolicy;
use crate::scenario::LearnerConfig;
use crate::torch::HostSyncCounter;

/// Gradients and divergence of one evaluation of a batch.
fn gradients(training: &mut Training<CueTask>, batch: &SequenceBatch) -> (Vec<f64>, UpdateNumbers) {
    let config = LearnerConfig {
        epochs: 1,
        max_grad_norm: None,
        ..small_config()
    };
    let mut optimizer =
        PolicyOptimizer::new(&training.policy, &config, crate::nn::Implementation::Plain).expect("sound");
    let reads = HostSyncCounter::default();
    let update = Update {
        config: &config,
        // Nothing moves, gradients remain.
        schedules: LearnerSchedules {
            lr: 0.0,
            ..training.learner.schedules()
        },
        batch,
        reads: &reads,
    };
    let mut rng = crate::random::RunRng::from_seed(1);
    let measured = update.run(&training.policy, &mut optimizer, &mut rng).expect("runs");
    let reading = &measured.readings[0];
    let grads = training.policy.params();
    let grads = grads.iter().filter(|param| param.tensor.grad().defined());
    (
        grads.flat_map(|param| read(&param.tensor.grad())).collect(),
        [Scalar::LossTotal, Scalar::Kl, Scalar::LossValue].map(|scalar| reading.get(scalar)),
    )
}

type UpdateNumbers = [f64; 3];

#[test]
fn padding_changes_neither_losses_nor_gradients() {
    let mut training = cue(small_config());
    training.play();
    training.learn();
    training.play();
    let config = training.learner.config().clone();
    let head = training.policy.value_output();
    let learner = &mut training.learner;
    let rollout = finalize(
        &mut training.buffer,
        &mut learner.rewards,
        &mut learner.values,
        &head,
        &config,
    );
    let plain = rollout.expect("finished").expect("usable").batch;
    // The policy moves on, so that ratios are not 1.
    for param in training.policy.params() {
        let moved = param.tensor.detach() * 1.02;
        crate::torch::copy_into(&param.tensor, &moved, false).expect("copy");
    }

    let mut all = sequences(&training.buffer);
    all.extend(
        [Sequence {
            env: 0,
            start: 0,
            len: 0,
            state: training.buffer.zero_state(),
        }; 3],
    );
    let targets = vec![vec![Default::default(); 12]; 8];
    let padded = SequenceBatch::gather(&training.buffer, &targets, &all, 22, true, &config).expect("memory");
    // Targets are the plain batch's: only the padding is new.
    let mut padded = padded;
    for (field, source) in [
        (&mut padded.advantages, &plain.advantages),
        (&mut padded.targets, &plain.targets),
    ] {
        field.narrow(0, 0, 8).narrow(1, 0, 12).copy_(source);
    }

    let (expected, numbers) = gradients(&mut training, &plain);
    for param in training.policy.params() {
        let mut tensor = param.tensor;
        tensor.zero_grad();
    }
    let (found, padded_numbers) = gradients(&mut training, &padded);

    assert!(numbers[1] > 1e-6, "the policy has moved");
    for (a, b) in numbers.iter().zip(padded_numbers) {
        assert!((a - b).abs() <= 1e-6, "{numbers:?} {padded_numbers:?}");
    }
    for (a, b) in expected.iter().zip(&found) {
        assert!((a - b).abs() <= 1e-6, "{a} {b}");
    }
}
