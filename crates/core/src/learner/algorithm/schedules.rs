//! What changes in the course of learning, as functions of the successful updates so far.

use crate::scenario::{LEAST_ENTROPY_COEF, LearnerConfig, LrSchedule};

/// Factor of the policy's probability floors after the last update: it tries less once it knows more.
const LAST_FLOOR: f64 = 0.2;

/// How long the run learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// All updates of the run.
    pub total_updates: u64,
    /// Envs whose episodes an update learns from.
    pub envs: usize,
}

impl Horizon {
    /// Updates that learn from the first `episodes` episodes of all envs.
    pub(crate) fn updates_of(self, episodes: u32, config: &LearnerConfig) -> u64 {
        let per_update = self.envs as u64 * u64::from(config.episodes_per_update);
        u64::from(episodes).div_ceil(per_update.max(1))
    }
}

/// Values in force during an update.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LearnerSchedules {
    /// Learning rate.
    pub lr: f64,
    /// Weight of the entropy bonus.
    pub entropy_coef: f64,
    /// Weight of the value loss.
    pub value_coef: f64,
    /// Factor of the entropy floors' penalty.
    pub entropy_floor: f64,
    /// Factor of the probability floors in the rollout that follows.
    pub probability_floor: f64,
    /// Weight of the divergence from a teacher, where there is one.
    pub teacher_coef: f64,
    /// Where there is a teacher, the critic alone learns.
    pub is_critic_alone: bool,
}

impl LearnerSchedules {
    /// For the update after `updates` successful ones.
    pub fn at(updates: u64, config: &LearnerConfig, horizon: Horizon) -> Self {
        let progress = (updates as f64 / horizon.total_updates.max(1) as f64).min(1.0);
        Self {
            lr: learning_rate(updates, config, horizon),
            entropy_coef: entropy_coef(updates, config, horizon),
            value_coef: value_coef(updates, config),
            entropy_floor: entropy_floor(progress),
            probability_floor: 1.0 + progress * (LAST_FLOOR - 1.0),
            teacher_coef: config.teaching.coef * (1.0 - ramp(updates, config.teaching.updates.into())),
            is_critic_alone: updates < config.teaching.critic_updates.into(),
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
        let (start, end) = config.entropy_coefs();
        start + ramp(updates, horizon.updates_of(config.entropy_anneal_episodes, config)) * (end - start)
    };
    coef.max(LEAST_ENTROPY_COEF)
}

fn value_coef(updates: u64, config: &LearnerConfig) -> f64 {
    let start = config.value_coef_start.unwrap_or(0.1 * config.value_coef);
    start + ramp(updates, config.value_warmup_updates.into()) * (config.value_coef - start)
}

/// Strong while the policy is young, weaker in the last quarter.
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
mod tests;
