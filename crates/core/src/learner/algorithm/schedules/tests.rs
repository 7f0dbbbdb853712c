use super::*;
use crate::policy::fixtures::assert_close;

/// What is in force after some updates, of 100, of 4 envs.
#[track_caller]
fn assert_course(config: &LearnerConfig, of: fn(LearnerSchedules) -> f64, course: &[(u64, f64)]) {
    let horizon = Horizon {
        total_updates: 100,
        envs: 4,
    };
    let at = |(updates, _): &(u64, f64)| of(LearnerSchedules::at(*updates, config, horizon));
    let found: Vec<f64> = course.iter().map(at).collect();
    let expected: Vec<f64> = course.iter().map(|(_, expected)| *expected).collect();
    assert_close(&found, &expected, 1e-12);
}

#[test]
fn the_learning_rate_warms_up_and_falls_in_a_line() {
    let config = LearnerConfig {
        lr: 3e-4,
        lr_schedule: LrSchedule::Linear,
        lr_warmup_updates: 10,
        ..LearnerConfig::default()
    };
    let course = [(0, 3e-5), (9, 3e-4), (10, 3e-4), (55, 1.5e-4), (100, 0.0), (500, 0.0)];
    assert_course(&config, |schedules| schedules.lr, &course);
}

#[test]
fn the_learning_rate_falls_in_half_a_cosine_to_what_is_left() {
    let config = LearnerConfig {
        lr: 3e-4,
        lr_schedule: LrSchedule::Cosine,
        lr_end_factor: 0.2,
        ..LearnerConfig::default()
    };
    let course = [(0, 3e-4), (50, 0.6 * 3e-4), (100, 0.2 * 3e-4)];
    assert_course(&config, |schedules| schedules.lr, &course);
}

/// 40 episodes of 4 envs are 10 updates, 200 are 50.
#[test]
fn the_entropy_bonus_anneals_over_episodes() {
    let mut config = LearnerConfig {
        entropy_coef_start: Some(0.15),
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
fn the_weight_of_the_value_loss_ramps_up_where_it_is_asked_to() {
    let mut config = LearnerConfig::default();
    assert_course(&config, |schedules| schedules.value_coef, &[(0, 1.0)]);
    (config.value_coef, config.value_warmup_updates) = (0.5, 10);
    let course = [(0, 0.05), (5, 0.275), (10, 0.5)];
    assert_course(&config, |schedules| schedules.value_coef, &course);
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
