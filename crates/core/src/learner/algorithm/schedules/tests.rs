use super::*;

const FOUR_ENVS: Horizon = Horizon {
    total_updates: 100,
    envs: 4,
};

#[track_caller]
fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-12, "{actual} != {expected}");
}

#[test]
fn the_learning_rate_warms_up_and_falls_in_a_line() {
    let config = LearnerConfig {
        lr: 3e-4,
        lr_schedule: LrSchedule::Linear,
        lr_warmup_updates: 10,
        ..LearnerConfig::default()
    };
    for (updates, expected) in [(0, 3e-5), (9, 3e-4), (10, 3e-4), (55, 1.5e-4), (100, 0.0), (500, 0.0)] {
        assert_close(LearnerSchedules::at(updates, &config, FOUR_ENVS).lr, expected);
    }
}

#[test]
fn the_learning_rate_falls_in_half_a_cosine_to_what_is_left() {
    let config = LearnerConfig {
        lr: 3e-4,
        lr_schedule: LrSchedule::Cosine,
        lr_end_factor: 0.2,
        ..LearnerConfig::default()
    };
    for (updates, expected) in [(0, 3e-4), (50, 0.6 * 3e-4), (100, 0.2 * 3e-4)] {
        assert_close(LearnerSchedules::at(updates, &config, FOUR_ENVS).lr, expected);
    }
}

/// 40 episodes of 4 envs are 10 updates, 200 are 50.
#[test]
fn the_entropy_bonus_anneals_over_episodes() {
    let anneal = |episodes| LearnerConfig {
        entropy_coef_start: Some(0.15),
        entropy_coef_end: Some(0.05),
        entropy_anneal_episodes: episodes,
        ..LearnerConfig::default()
    };
    let coef = |updates, episodes| LearnerSchedules::at(updates, &anneal(episodes), FOUR_ENVS).entropy_coef;
    for (updates, expected) in [(0, 0.15), (5, 0.10), (10, 0.05), (99, 0.05)] {
        assert_close(coef(updates, 40), expected);
    }
    assert_close(coef(25, 200), 0.10);
    assert_close(coef(50, 200), 0.05);
}

#[test]
fn the_entropy_bonus_is_constant_by_default_and_never_below_its_minimum() {
    assert_close(
        LearnerSchedules::at(70, &LearnerConfig::default(), FOUR_ENVS).entropy_coef,
        0.02,
    );
    let low = LearnerConfig {
        entropy_coef: 0.0,
        ..LearnerConfig::default()
    };
    assert_close(LearnerSchedules::at(0, &low, FOUR_ENVS).entropy_coef, 0.01);
}

#[test]
fn value_and_auxiliary_weights_ramp_up() {
    let config = LearnerConfig {
        value_coef: 0.5,
        value_warmup_updates: 10,
        ..LearnerConfig::default()
    };
    let at = |updates| LearnerSchedules::at(updates, &config, FOUR_ENVS);
    assert_close(at(0).value_coef, 0.05);
    assert_close(at(5).value_coef, 0.275);
    assert_close(at(10).value_coef, 0.5);
    assert_close(
        LearnerSchedules::at(0, &LearnerConfig::default(), FOUR_ENVS).value_coef,
        1.0,
    );
}

#[test]
fn the_entropy_floor_is_strong_at_first() {
    for (updates, expected) in [(0, 1.5), (50, 1.0), (90, 0.7), (100, 0.5)] {
        let found = LearnerSchedules::at(updates, &LearnerConfig::default(), FOUR_ENVS).entropy_floor;
        assert_close(found, expected);
    }
}

#[test]
fn probability_floors_shrink_to_their_end() {
    for (updates, expected) in [(0, 1.0), (50, 0.6), (100, 0.2), (200, 0.2)] {
        let found = LearnerSchedules::at(updates, &LearnerConfig::default(), FOUR_ENVS).probability_floor;
        assert_close(found, expected);
    }
}
