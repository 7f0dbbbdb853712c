use std::fs;

use super::*;
use crate::controller::{ActorCriticController, fixtures::Ground};
use crate::learner::Horizon;
use crate::nn::Implementation;
use crate::torch::{HostSyncCounter, NoGrad, read_f64};

fn learner() -> Learner {
    let mut ground = Ground::default();
    ground.scenario.policy.net_cfg.hidden_dim = 32;
    let policy = ActorCriticController::new(&ground.context()).unwrap();
    let (total_updates, envs) = (4, 2);
    let horizon = Horizon { total_updates, envs };
    let config = ground.scenario.learner.clone();
    Learner::new(config, horizon, 1, &policy, Implementation::Plain).unwrap()
}

fn moments(learner: &Learner) -> Vec<f64> {
    let values = |(_, tensor)| read_f64(&tensor, &HostSyncCounter::default()).unwrap();
    learner.state_tensors().into_iter().flat_map(values).collect()
}

/// A checkpoint of a learner with non-zero moments.
fn saved(folder: &Path) -> Learner {
    let learner = learner();
    for (_, mut tensor) in learner.state_tensors() {
        let _no_grad = NoGrad::new();
        let _ = tensor.fill_(0.5);
    }
    save_learner(folder, &learner).unwrap();
    learner
}

#[test]
fn a_saved_learner_comes_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let before = saved(folder.path());

    let mut after = learner();
    assert_ne!(moments(&after), moments(&before));
    load_learner(folder.path(), &mut after).unwrap();
    assert_eq!(moments(&after), moments(&before));
}

#[test]
fn numbers_that_are_not_finite_are_refused_and_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    let before = saved(folder.path());
    for (name, mut tensor) in before.state_tensors() {
        let _no_grad = NoGrad::new();
        let _ = match name.as_str() {
            name if name.starts_with("exp_avg_sq.") => tensor.fill_(-1.0),
            name if name.starts_with("exp_avg.") => tensor.fill_(f64::NAN),
            _ => tensor,
        };
    }
    save_learner(folder.path(), &before).unwrap();
    let path = folder.path().join("learner.ron");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("mean: 0.0", "mean: inf")).unwrap();
    let mut fresh = learner();
    let untouched = moments(&fresh);

    let why = load_learner(folder.path(), &mut fresh).unwrap_err().to_string();

    for problem in [
        "the statistics of rewards are not finite",
        "the statistics of returns are not finite",
        "`exp_avg.core.0.lstm.weight_hh` holds values that are not finite",
        "`exp_avg_sq.core.0.lstm.weight_hh` holds squares below 0",
    ] {
        assert!(why.contains(problem), "{problem}: {why}");
    }
    assert_eq!(moments(&fresh), untouched);
}

#[test]
fn a_file_that_isnt_a_learner_is_named_and_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path());
    fs::write(folder.path().join("learner.ron"), "(updates: 1)").unwrap();
    let mut fresh = learner();
    let untouched = moments(&fresh);

    let why = load_learner(folder.path(), &mut fresh).unwrap_err().to_string();

    assert!(why.contains("learner.ron cannot be read"), "{why}");
    assert_eq!(moments(&fresh), untouched);
}
