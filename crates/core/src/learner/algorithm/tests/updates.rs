//! Rollouts in, parameters out: agreement with acting, what an update reports, checkpoints.

use super::policy::Core;
use super::tasks::{BanditTask, CueTask};
use super::training::{Training, small_config};
use super::{UPDATES, cue, params};
use crate::learner::algorithm::*;
use crate::policy::TrainablePolicy;
use crate::policy::fixtures::assert_close;
use crate::telemetry::{LearnerUpdate, Num};

#[track_caller]
fn assert_repeated(update: &LearnerUpdate) {
    let drift = update.measured.logp_drift_mean;
    assert!(drift.is_some_and(|drift| drift.0 <= 1e-5), "{drift:?}");
}

#[test]
fn before_the_first_step_evaluation_repeats_what_was_said_when_acting() {
    let mut cue = cue(small_config());
    // Later rollouts, so that the outputs depend on the memory of the cells.
    for _ in 0..3 {
        cue.play();
        let update = cue.learn();
        assert!(update.update_performed);
        assert_repeated(&update);
    }

    let mut bandit = Training::new(BanditTask::new(8), Core::FeedForward, small_config(), UPDATES, 7);
    bandit.policy.floor = 0.03;
    bandit.play();
    assert_repeated(&bandit.learn());
}

/// Floors of probability fall from rollout to rollout, and only with updates that were performed.
#[test]
fn a_performed_update_lowers_the_floors_of_the_next_rollout() {
    let mut training = Training::new(CueTask::new(8), Core::Lstm, small_config(), 4, 7);
    training.policy.floor = 0.1;
    for expected in [0.8, 0.6, 0.4] {
        training.play();
        let update = training.learn();
        assert!(update.update_performed);
        assert_repeated(&update);
        assert_close(&[training.policy.floor_scale], &[expected], 1e-12);
    }

    let update = training.learn_with(|_, evaluation| evaluation.value = &evaluation.value * f64::NAN);
    assert!(!update.update_performed);
    assert_close(&[training.policy.floor_scale], &[0.4], 1e-12);
}

/// Without graphs, minibatches are still copied to one place.
#[test]
fn an_update_that_is_recorded_comes_to_the_same() {
    let played = |is_recorded: bool| {
        let mut config = small_config();
        (config.num_minibatches, config.target_kl) = (2, None);
        let mut training = cue(config).with_cuda_graphs(is_recorded);
        for _ in 0..2 {
            training.play();
            assert!(training.learn().update_performed);
        }
        params(&training.policy)
    };

    assert_close(
        &played(true),
        &played(false),
        crate::torch::fixtures::tolerance(1e-12, 1e-5),
    );
}

#[test]
fn a_restored_learner_continues_exactly() {
    let mut config = small_config();
    (config.entropy_anneal_episodes, config.entropy_coef_end) = (100, Some(0.02));
    config.num_minibatches = 2;
    let mut first = cue(config.clone());
    for _ in 0..2 {
        first.play();
        first.learn();
    }

    let mut second = cue(config);
    for (param, weight) in second.policy.params().iter().zip(first.policy.params()) {
        crate::torch::copy_into(&param.tensor, &weight.tensor.detach(), false).expect("copy");
    }
    let saved = serde_json::to_string(&first.learner.state()).expect("plain data");
    let state: LearnerState = serde_json::from_str(&saved).expect("plain data");
    let moments = first.learner.state_tensors();
    second.learner.restore(&state, &moments).expect("the same learner");
    second.round = first.round;

    for _ in 0..2 {
        let [one, two] = [&mut first, &mut second].map(|training| {
            training.play();
            LearnerUpdate {
                update_ms: Num(0.0),
                ..training.learn()
            }
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
    let (renamed, tensor) = tensors.remove(0);
    tensors.push(("exp_avg.other".into(), tensor));

    let refused = training.learner.restore(&cue(small_config()).learner.state(), &tensors);

    let differences = vec![
        format!("`{renamed}` is missing"),
        "`exp_avg.other` isn't a tensor of this learner".into(),
    ];
    assert_eq!(refused, Err(LearnerError::Incompatible(differences)));
    assert_eq!(training.learner.state(), state);
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
