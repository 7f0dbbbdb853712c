//! What changes in the course of learning, as functions of the successful updates so far (spec 04 §7.4, §8).

use serde::{Deserialize, Serialize};

use crate::scenario::{LearnerConfig, LrSchedule};

/// How long learning will go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Horizon {
    pub total_updates: u64,
    pub envs: usize,
}

/// Values in force during one update.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedules {
    pub lr: f64,
    pub entropy_coef: f64,
    pub value_coef: f64,
    pub aux_coef: f64,
    pub clip_ratio: f64,
    /// Factor of the entropy floor penalty.
    pub entropy_floor: f64,
    /// Factor of the policy's probability floors in the rollout after this update.
    pub probability_floor: f64,
}

impl Schedules {
    /// For the update after `updates` successful ones.
    pub fn at(updates: u64, config: &LearnerConfig, horizon: Horizon) -> Self {
        let progress = (updates as f64 / horizon.total_updates.max(1) as f64).min(1.0);
        Self {
            lr: learning_rate(updates, config, horizon),
            entropy_coef: entropy_coef(updates, config, horizon),
            value_coef: value_coef(updates, config),
            aux_coef: config.aux_coef * ramp(updates, config.aux_warmup_updates.into()),
            clip_ratio: config.clip_ratio,
            entropy_floor: entropy_floor(progress),
            probability_floor: 1.0 + progress * (config.prob_floor_end_scale - 1.0),
        }
    }
}

/// From 0 to 1 over `span` updates; 1 at once if it is 0.
fn ramp(updates: u64, span: u64) -> f64 {
    if span == 0 {
        1.0
    } else {
        (updates as f64 / span as f64).min(1.0)
    }
}

fn learning_rate(updates: u64, config: &LearnerConfig, horizon: Horizon) -> f64 {
    let warmup = u64::from(config.lr_warmup_updates);
    if updates < warmup {
        return config.lr * (updates + 1) as f64 / warmup as f64;
    }
    let span = horizon.total_updates.saturating_sub(warmup).max(1);
    let done = ((updates - warmup) as f64 / span as f64).min(1.0);
    let end = config.lr_end_factor;
    let factor = match config.lr_schedule {
        LrSchedule::Constant => 1.0,
        LrSchedule::Linear => end + (1.0 - end) * (1.0 - done),
        LrSchedule::Cosine => end + (1.0 - end) * 0.5 * (1.0 + (std::f64::consts::PI * done).cos()),
    };
    config.lr * factor
}

fn entropy_coef(updates: u64, config: &LearnerConfig, horizon: Horizon) -> f64 {
    let coef = if config.entropy_anneal_episodes == 0 {
        config.entropy_coef
    } else {
        let per_update = horizon.envs as u64 * u64::from(config.episodes_per_update);
        let span = u64::from(config.entropy_anneal_episodes).div_ceil(per_update.max(1));
        let (start, end) = config.entropy_coefs();
        start + ramp(updates, span) * (end - start)
    };
    coef.max(config.entropy_coef_min)
}

fn value_coef(updates: u64, config: &LearnerConfig) -> f64 {
    let start = config.value_coef_start.unwrap_or(0.1 * config.value_coef);
    start + ramp(updates, config.value_warmup_updates.into()) * (config.value_coef - start)
}

/// Strong while the policy is young, weaker in the last quarter (spec 04 §7.4).
fn entropy_floor(progress: f64) -> f64 {
    if progress < 0.25 {
        1.5
    } else if progress < 0.75 {
        1.0
    } else {
        1.0 - 0.5 * (progress - 0.75) / 0.25
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR_ENVS: Horizon = Horizon {
        total_updates: 100,
        envs: 4,
    };

    #[track_caller]
    fn assert_close(actual: f64, expected: f64) {
        assert!((actual - expected).abs() < 1e-12, "{actual} != {expected}");
    }

    /// Spec 04 Check 16.
    #[test]
    fn the_learning_rate_warms_up_and_falls_in_a_line() {
        let config = LearnerConfig {
            lr_schedule: LrSchedule::Linear,
            lr_warmup_updates: 10,
            ..LearnerConfig::default()
        };
        for (updates, expected) in [(0, 3e-5), (9, 3e-4), (10, 3e-4), (55, 1.5e-4), (100, 0.0), (500, 0.0)] {
            assert_close(Schedules::at(updates, &config, FOUR_ENVS).lr, expected);
        }
    }

    #[test]
    fn the_learning_rate_falls_in_half_a_cosine_to_what_is_left() {
        let config = LearnerConfig {
            lr_schedule: LrSchedule::Cosine,
            lr_end_factor: 0.2,
            ..LearnerConfig::default()
        };
        for (updates, expected) in [(0, 3e-4), (50, 0.6 * 3e-4), (100, 0.2 * 3e-4)] {
            assert_close(Schedules::at(updates, &config, FOUR_ENVS).lr, expected);
        }
    }

    /// Spec 04 Check 16: 40 episodes of 4 envs are 10 updates, 200 are 50.
    #[test]
    fn the_entropy_bonus_anneals_over_episodes() {
        let anneal = |episodes| LearnerConfig {
            entropy_coef_start: Some(0.15),
            entropy_coef_end: Some(0.05),
            entropy_anneal_episodes: episodes,
            ..LearnerConfig::default()
        };
        let coef = |updates, episodes| Schedules::at(updates, &anneal(episodes), FOUR_ENVS).entropy_coef;
        for (updates, expected) in [(0, 0.15), (5, 0.10), (10, 0.05), (99, 0.05)] {
            assert_close(coef(updates, 40), expected);
        }
        assert_close(coef(25, 200), 0.10);
        assert_close(coef(50, 200), 0.05);
    }

    #[test]
    fn the_entropy_bonus_is_constant_by_default_and_never_below_its_minimum() {
        assert_close(
            Schedules::at(70, &LearnerConfig::default(), FOUR_ENVS).entropy_coef,
            0.05,
        );
        let low = LearnerConfig {
            entropy_coef: 0.0,
            ..LearnerConfig::default()
        };
        assert_close(Schedules::at(0, &low, FOUR_ENVS).entropy_coef, 0.01);
    }

    #[test]
    fn value_and_auxiliary_weights_ramp_up() {
        let config = LearnerConfig {
            value_warmup_updates: 10,
            ..LearnerConfig::default()
        };
        let at = |updates| Schedules::at(updates, &config, FOUR_ENVS);
        assert_close(at(0).value_coef, 0.05);
        assert_close(at(5).value_coef, 0.275);
        assert_close(at(10).value_coef, 0.5);
        assert_close(at(0).aux_coef, 0.0);
        assert_close(at(10).aux_coef, 0.025);
        assert_close(at(40).aux_coef, 0.05);
        assert_close(Schedules::at(0, &LearnerConfig::default(), FOUR_ENVS).value_coef, 0.5);
    }

    /// Spec 04 Check 12: 1.5, 1, 0.7 and 0.5 times .012.
    #[test]
    fn the_entropy_floor_is_strong_at_first() {
        for (updates, expected) in [(0, 1.5), (50, 1.0), (90, 0.7), (100, 0.5)] {
            let found = Schedules::at(updates, &LearnerConfig::default(), FOUR_ENVS).entropy_floor;
            assert_close(found, expected);
        }
    }

    #[test]
    fn probability_floors_shrink_to_their_end() {
        for (updates, expected) in [(0, 1.0), (50, 0.6), (100, 0.2), (200, 0.2)] {
            let found = Schedules::at(updates, &LearnerConfig::default(), FOUR_ENVS).probability_floor;
            assert_close(found, expected);
        }
    }
}
