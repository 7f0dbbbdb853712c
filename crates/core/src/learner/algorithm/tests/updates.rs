//! Rollouts in, parameters out: agreement with acting, what an update reports, checkpoints.

use tch::{Kind, Tensor};

use super::faulty::{learn_and_listen, params};
use super::policy::Core;
use super::tasks::{BanditTask, CueTask};
use super::training::{Training, small_config};
use super::{UPDATES, cue};
use crate::learner::algorithm::*;
use crate::policy::{Evaluation, TrainablePolicy};
use crate::scenario::LearnerConfig;
use crate::telemetry::{LearnerUpdate, Num};

#[test]
fn before_the_first_step_evaluation_repeats_what_was_said_when_acting() {
    let mut cue = cue(small_config());
    cue.play();
    let record = cue.learn();
    assert!(record.update_performed);
    assert!(record.measured.logp_drift_mean.is_some_and(|drift| drift.0 <= 1e-5));

    let mut bandit = Training::new(BanditTask::new(8), Core::FeedForward, small_config(), UPDATES, 7);
    bandit.policy.floor = 0.03;
    bandit.play();
    assert!(
        bandit
            .learn()
            .measured
            .logp_drift_mean
            .is_some_and(|drift| drift.0 <= 1e-5)
    );
}

/// A chunk starts from the state that entered it, and before the first step that state is no
/// approximation.
#[test]
fn chunks_of_a_rollout_evaluate_as_the_whole_of_it() {
    let mut cue = cue(LearnerConfig {
        chunk_length: Some(5),
        epochs: 1,
        ..small_config()
    });
    // So that the outputs depend on the memory of the cells.
    for _ in 0..3 {
        cue.play();
        let record = cue.learn();
        assert!(record.update_performed);
        let drift = record.measured.logp_drift_mean;
        assert!(drift.is_some_and(|drift| drift.0 <= 1e-5), "{drift:?}");
    }
}

/// Floors of probability fall from rollout to rollout, and only with updates that were performed.
#[test]
fn a_performed_update_lowers_the_floors_of_the_next_rollout() {
    let mut training = Training::new(CueTask::new(8), Core::Lstm, small_config(), 4, 7);
    training.policy.floor = 0.1;
    for expected in [0.8, 0.6, 0.4] {
        let (record, floor_scale) = learn_and_listen(&mut training, &|_, _| ());
        assert!(record.update_performed);
        assert!(record.measured.logp_drift_mean.is_some_and(|drift| drift.0 <= 1e-5));
        assert!(
            floor_scale.is_some_and(|scale| (scale - expected).abs() < 1e-12),
            "{floor_scale:?}"
        );
    }

    let spoil = |_: usize, evaluation: &mut Evaluation| evaluation.value = &evaluation.value * f64::NAN;
    let (record, floor_scale) = learn_and_listen(&mut training, &spoil);
    assert!(!record.update_performed);
    assert!(
        floor_scale.is_some_and(|scale| (scale - 0.4).abs() < 1e-12),
        "{floor_scale:?}"
    );
}

#[test]
fn a_restored_learner_continues_exactly() {
    let config = LearnerConfig {
        entropy_anneal_episodes: 100,
        entropy_coef_start: Some(0.1),
        num_minibatches: 2,
        ..small_config()
    };
    let copy = |tensors: Vec<(String, Tensor)>| -> Vec<(String, Tensor)> {
        let copied = tensors.into_iter().map(|(name, tensor)| (name, tensor.detach().copy()));
        copied.collect()
    };
    let mut first = cue(config.clone());
    for _ in 0..2 {
        first.play();
        first.learn();
    }
    let weights: Vec<Tensor> = first.policy.params().iter().map(|p| p.tensor.detach().copy()).collect();
    let (state, moments) = (first.learner.state(), copy(first.learner.state_tensors()));
    let saved = serde_json::to_string(&state).expect("plain data");

    let mut second = cue(config);
    for (param, weight) in second.policy.params().iter().zip(&weights) {
        crate::torch::copy_into(&param.tensor, weight, false).expect("copy");
    }
    let state: LearnerState = serde_json::from_str(&saved).expect("plain data");
    second.learner.restore(&state, &moments).expect("the same learner");
    second.round = first.round;

    for _ in 0..2 {
        let records = [&mut first, &mut second].map(|training| {
            training.play();
            training.learn()
        });
        let [one, two] = records.map(|record| LearnerUpdate {
            update_ms: Num(0.0),
            ..record
        });
        assert_eq!(one, two);
    }
    assert_eq!(params(&first.policy), params(&second.policy));
    assert_eq!(first.learner.state(), second.learner.state());
}

#[test]
fn a_state_that_does_not_fit_is_refused_with_every_difference() {
    let mut training = cue(small_config());
    training.play();
    training.learn();
    let state = training.learner.state();
    let mut tensors = training.learner.state_tensors();
    let (renamed, _) = tensors.remove(0);
    tensors.push((
        "exp_avg.other".into(),
        Tensor::zeros([1], (Kind::Float, tch::Device::Cpu)),
    ));
    let before = training.learner.state();

    let error = training.learner.restore(&state, &tensors).expect_err("does not fit");

    let LearnerError::Incompatible(differences) = error else {
        panic!("{error}");
    };
    let expected = [
        format!("`{renamed}` is missing"),
        "`exp_avg.other` is no tensor of this learner".into(),
    ];
    assert_eq!(differences, expected);
    assert_eq!(training.learner.state(), before);
}

#[test]
fn a_performed_update_reports_what_it_measured() {
    let mut training = cue(small_config());
    training.play();
    let record = training.learn();

    assert_eq!((record.steps_taken, record.updates), (4, 1));
    let rollout = record.data.expect("measured");
    assert_eq!((rollout.steps_valid, rollout.steps_actor), (96, 16));
    assert!(rollout.return_std.0 > 0.0 && record.update_ms.0 > 0.0);
    assert!(record.measured.grad_norm.is_some_and(|norm| norm.0 > 0.0));
    assert_eq!(record.measured.head_entropy_avail.get("blueprint"), None);
    assert!(record.measured.head_entropy_avail["op"].0 > 0.9);
}
