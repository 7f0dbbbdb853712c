use super::*;
use crate::learner::algorithm::tests::bench::assert_close;
use crate::policy::fixtures;
use crate::torch::fixtures::{on_device, test_device};

fn steps(values: &[f32]) -> Tensor {
    on_device(Tensor::from_slice(values)).reshape([1, -1])
}

fn flags(values: &[bool]) -> Tensor {
    on_device(Tensor::from_slice(values)).reshape([1, -1])
}

/// `[1, T, K]` from one column per head.
fn heads(columns: &[Tensor]) -> Tensor {
    Tensor::stack(columns, -1)
}

/// An op head and a slot head that matters in two of three steps.
#[test]
fn every_head_has_its_own_surrogate_and_only_steps_that_count_diverge_and_are_clipped() {
    let actor = flags(&[true; 3]);
    let causal = heads(&[flags(&[true; 3]), flags(&[true, false, true])]);
    let logs = heads(&[steps(&[0.1, -0.3, 0.25]), steps(&[0.2, 0.0, -0.1])]);
    let ratios = Ratios::new(&logs, &logs.zeros_like(), &causal);

    let denominators = head_denominators(&causal, &actor, 0.0);
    let loss = per_head_policy_loss(&ratios, &steps(&[1.0, -1.0, 2.0]), &causal, &denominators, 0.2);
    assert_close(&loss, &[-0.901_723_6, -1.504_837_4]);

    let divergence = mean(&kl_terms(&ratios.joint, &ratios.joint_log), &actor);
    assert_close(&divergence, &[0.034_170_4]);
    let clipped = |ratios: &Tensor| (ratios - 1.0).abs().gt(0.2).to_kind(Kind::Float);
    assert_close(&mean_by_head(&clipped(&ratios.heads), &causal), &[2.0 / 3.0, 0.5]);
    assert_close(&mean(&clipped(&ratios.joint), &actor), &[2.0 / 3.0]);
}

#[test]
fn a_rare_head_is_divided_by_a_share_of_all_steps() {
    let actor = Tensor::ones([1, 100], (Kind::Bool, test_device()));
    let mut once = [false; 100];
    once[7] = true;
    let causal = heads(&[flags(&[true; 100]), flags(&once)]);
    assert_close(&head_denominators(&causal, &actor, 0.05), &[100.0, 5.0]);
    assert_close(&head_denominators(&causal, &actor, 0.0), &[100.0, 1.0]);
}

#[test]
fn the_value_loss_is_weighted() {
    let (values, targets) = (steps(&[0.5, 1.0, 2.0]), steps(&[1.0, 0.0, 2.5]));
    let weights = steps(&[1.0, 0.2, 1.0]);
    let valid = flags(&[true; 3]);
    assert_close(&value_loss(&values, &targets, &weights, &valid), &[0.159_090_9]);
}

/// `.3·(.30 − .10)²`, times the schedule's 1.
#[test]
fn entropy_below_its_floor_is_penalised_where_the_head_was_available() {
    let entropy = heads(&[steps(&[0.05, 0.15, 0.9]), steps(&[0.0, 0.0, 0.0])]);
    let available = heads(&[flags(&[true, true, false]), flags(&[false; 3])]);
    let [floors, coefs] = [[0.3f32, 0.2], [0.3, 0.3]].map(|values| on_device(Tensor::from_slice(&values)));
    assert_close(&entropy_floor_penalty(&entropy, &available, &floors, &coefs), &[0.012]);
}

#[test]
fn what_a_mask_excludes_has_neither_value_nor_gradient() {
    let values = steps(&[0.1, f32::NAN, 1000.0]).reshape([1, 3, 1]);
    let values = values.set_requires_grad(true);
    let mask = flags(&[true, false, false]);
    let causal = mask.unsqueeze(-1);
    let ratios = Ratios::new(&values, &values.detach().zeros_like(), &causal);
    let denominators = head_denominators(&causal, &mask, 0.05);

    let advantages = steps(&[1.0, f32::NAN, 1.0]);
    let loss = per_head_policy_loss(&ratios, &advantages, &causal, &denominators, 0.2).sum(Kind::Float);
    loss.backward();

    assert_close(&loss, &[-1.105_170_9]);
    assert_close(&values.grad(), &[-1.105_170_9, 0.0, 0.0]);
    let nothing = flags(&[false; 3]);
    assert_close(&mean(&advantages, &nothing), &[0.0]);
}

#[test]
fn cloning_weighs_the_log_likelihood_of_heads_that_mattered() {
    let log_probs = heads(&[steps(&[-1.0, -2.0, -4.0]), steps(&[-3.0, -5.0, f32::NAN])]);
    let causal = heads(&[flags(&[true, true, true]), flags(&[true, false, false])]);
    let denominators = on_device(Tensor::from_slice(&[3.0_f32, 1.0]));

    let loss = cloning_loss(&log_probs, &steps(&[1.0, 0.5, 2.0]), &causal, &denominators);

    // (1 + 1 + 8) / 3 and 3 / 1.
    assert_close(&loss, &[10.0 / 3.0, 3.0]);
}

#[test]
fn the_divergence_from_a_teacher_is_that_of_the_joint_choice() {
    let causal = heads(&[flags(&[true, true]), flags(&[true, false])]);
    let own = heads(&[steps(&[-1.0, -0.5]), steps(&[-2.0, -9.0])]);
    let teacher = heads(&[steps(&[-1.2, -0.5]), steps(&[-2.1, -1.0])]);

    let divergence = divergence_from(&teacher, &own, &causal, &flags(&[true, true]));

    // (e^-0.3 − 1 + 0.3) / 2; in the second step they agree where it mattered.
    assert_close(&divergence, &[0.020_409_1]);
}

/// Checks the values in force after given updates, of 100, with 4 envs.
#[track_caller]
fn assert_course(config: &LearnerConfig, of: fn(LearnerSchedules) -> f64, course: &[(u64, f64)]) {
    let horizon = Horizon {
        total_updates: 100,
        envs: 4,
    };
    let at = |(updates, _): &(u64, f64)| of(LearnerSchedules::at(*updates, config, horizon));
    let found: Vec<f64> = course.iter().map(at).collect();
    let expected: Vec<f64> = course.iter().map(|(_, expected)| *expected).collect();
    fixtures::assert_close(&found, &expected, 1e-12);
}

#[test]
fn the_learning_rate_falls_in_a_line_to_what_is_left() {
    let mut config = LearnerConfig {
        lr: 3e-4,
        ..LearnerConfig::default()
    };
    assert_course(&config, |schedules| schedules.lr, &[(0, 3e-4), (100, 3e-4)]);
    config.lr_end_factor = 0.2;
    let course = [(0, 3e-4), (50, 0.6 * 3e-4), (100, 0.2 * 3e-4), (500, 0.2 * 3e-4)];
    assert_course(&config, |schedules| schedules.lr, &course);
}

/// 40 episodes of 4 envs are 10 updates, 200 are 50.
#[test]
fn the_entropy_bonus_anneals_over_episodes() {
    let mut config = LearnerConfig {
        entropy_coef: 0.15,
        entropy_coef_end: Some(0.05),
        ..LearnerConfig::default()
    };
    for (episodes, course) in [
        (40, &[(0, 0.15), (5, 0.10), (10, 0.05), (99, 0.05)][..]),
        (200, &[(25, 0.10), (50, 0.05)][..]),
    ] {
        config.entropy_anneal_episodes = episodes;
        assert_course(&config, |schedules| schedules.entropy_coef, course);
    }
}

#[test]
fn the_entropy_bonus_is_constant_by_default_and_never_below_its_minimum() {
    let mut config = LearnerConfig::default();
    assert_course(&config, |schedules| schedules.entropy_coef, &[(70, 0.02)]);
    config.entropy_coef = 0.0;
    assert_course(&config, |schedules| schedules.entropy_coef, &[(0, 0.01)]);
}

#[test]
fn the_entropy_floor_is_strong_at_first_and_probability_floors_shrink_to_their_end() {
    let config = LearnerConfig::default();
    let course = [(0, 1.5), (50, 1.0), (90, 0.7), (100, 0.5)];
    assert_course(&config, |schedules| schedules.entropy_floor, &course);
    let course = [(0, 1.0), (50, 0.6), (100, 0.2), (200, 0.2)];
    assert_course(&config, |schedules| schedules.probability_floor, &course);
}

#[test]
fn a_taught_policy_is_held_to_its_teacher_ever_less_and_its_critic_learns_first() {
    let config = LearnerConfig::default();
    let course = [(0, 1.0), (5, 0.75), (20, 0.0), (30, 0.0)];
    assert_course(&config, |schedules| schedules.teacher_coef, &course);
    let course = [(0, 1.0), (1, 1.0), (2, 0.0), (30, 0.0)];
    assert_course(&config, |schedules| f64::from(schedules.is_critic_alone), &course);
}
