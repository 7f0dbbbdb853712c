//! Results that padding must not change.

use tch::Tensor;

use super::cue;
use super::tasks::CueTask;
use super::training::{Training, small_config};
use crate::env::FallbackGuard;
use crate::learner::algorithm::LearnerSchedules;
use crate::learner::algorithm::learner::finalize;
use crate::learner::algorithm::measurements::Scalar;
use crate::learner::algorithm::optimizer::PolicyOptimizer;
use crate::learner::algorithm::sequences::{SequenceBatch, sequences};
use crate::learner::algorithm::steps::RowSegment;
use crate::learner::algorithm::update::{Update, by_head};
use crate::nn::Implementation;
use crate::policy::TrainablePolicy;
use crate::policy::fixtures::{assert_close, values};
use crate::random::RunRng;
use crate::torch::HostSyncCounter;

/// Gradients and divergence of one evaluation of a batch.
fn gradients(training: &Training<CueTask>, batch: &SequenceBatch) -> (Vec<f64>, [f64; 3]) {
    let mut config = small_config();
    (config.epochs, config.max_grad_norm) = (1, None);
    let mut optimizer = PolicyOptimizer::new(&training.policy, &config, Implementation::Plain).expect("sound");
    let update = Update {
        config: &config,
        // Nothing moves, gradients remain.
        schedules: LearnerSchedules {
            lr: 0.0,
            ..training.learner.schedules()
        },
        batch,
        by_head: by_head(batch.device()).expect("memory"),
        reads: &HostSyncCounter::default(),
        guard: &FallbackGuard::default(),
    };
    let mut params = training.policy.params();
    for param in &mut params {
        param.tensor.zero_grad();
    }
    let mut rng = RunRng::from_seed(1);
    let measured = update
        .run(&training.policy, &mut optimizer, &mut None, &mut rng)
        .expect("runs");
    let numbers = [Scalar::LossTotal, Scalar::Kl, Scalar::LossValue].map(|scalar| measured.readings[0].get(scalar));
    let gradients = params.iter().map(|param| param.tensor.grad());
    let gradients = gradients.filter(Tensor::defined).flat_map(|gradient| values(&gradient));
    (gradients.collect(), numbers)
}

#[test]
fn padding_changes_neither_losses_nor_gradients() {
    let mut training = cue(small_config());
    training.play();
    training.learn();
    training.play();
    let config = training.learner.config().clone();
    let head = training.policy.value_output();
    let rollout = finalize(&mut training.buffer, &mut training.learner.state, &head, &config);
    let plain = rollout.expect("finished").expect("usable").batch;
    // The policy moves on, so that ratios are not 1.
    for param in training.policy.params() {
        let moved = param.tensor.detach() * 1.02;
        crate::torch::copy_into(&param.tensor, &moved, false).expect("copy");
    }

    let mut all = sequences(&training.buffer);
    let nothing = RowSegment {
        end: all[0].start,
        ..all[0].clone()
    };
    all.extend(std::iter::repeat_n(nothing, 3));
    let targets = vec![vec![Default::default(); 12]; 8];
    let mut padded = SequenceBatch::gather(&training.buffer, &targets, &all, 22, true, &config).expect("memory");
    // Targets are the plain batch's: only the padding is new.
    for (field, source) in [
        (&mut padded.advantages, &plain.advantages),
        (&mut padded.targets, &plain.targets),
    ] {
        field.narrow(0, 0, 8).narrow(1, 0, 12).copy_(source);
    }

    let (expected, numbers) = gradients(&training, &plain);
    let (found, padded_numbers) = gradients(&training, &padded);

    assert!(numbers[1] > 1e-6, "the policy has moved");
    assert_close(&padded_numbers, &numbers, 1e-6);
    assert_close(&found, &expected, 1e-6);
}
