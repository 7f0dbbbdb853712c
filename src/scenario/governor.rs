//! Section `governor`: when an env counts as wrecked, what is kept to restore it, what the controller pays (spec 02 §8.1).

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GovernorConfig {
    /// If not, alarms are still reported, but nothing is captured, vetoed or rolled back.
    pub enabled: bool,
    /// Standard deviations above the mean loss of healthy steps.
    pub sensitivity: f64,
    /// Multiples of the mean loss of healthy steps.
    pub multiplier: f64,
    /// Nats; `None`: the task's.
    pub absolute_limit: Option<f64>,
    /// Healthy losses remembered.
    pub history_window: usize,
    /// Healthy losses needed before a mean is trusted.
    pub min_history: usize,
    /// Anomalies in a row that make a panic.
    pub min_panics: u32,
    pub collapse: CollapseConfig,
    /// Raw reward that a rollback costs, written as a positive number.
    pub death_penalty: f64,
    pub rollback_credit: RollbackCredit,
    pub snapshot: SnapshotPolicy,
    pub placement: SnapshotPlacement,
    /// The rollback of an episode that ends it; 0 and 1 both mean the first.
    pub max_rollbacks_per_episode: u32,
}

impl Default for GovernorConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            sensitivity: 6.0,
            multiplier: 3.0,
            absolute_limit: None,
            history_window: 20,
            min_history: 10,
            min_panics: 3,
            collapse: CollapseConfig::default(),
            death_penalty: 10.0,
            rollback_credit: RollbackCredit::PenalizeForfeit,
            snapshot: SnapshotPolicy::default(),
            placement: SnapshotPlacement::Auto,
            max_rollbacks_per_episode: 3,
        }
    }
}

/// When a network that was better than chance counts as collapsed; both are fractions of the loss of guessing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CollapseConfig {
    /// The mean loss must have been below this.
    pub arm: f64,
    /// The loss now lies this near to guessing.
    pub band: f64,
}

impl Default for CollapseConfig {
    fn default() -> Self {
        Self { arm: 0.6, band: 0.065 }
    }
}

/// What a rollback does to the rewards of the segment that it ends (spec 04 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RollbackCredit {
    PenalizeForfeit,
    PenalizeKeep,
    Invalidate,
}

/// When a healthy env is captured (spec 02 §8.5).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SnapshotPolicy {
    Adaptive {
        /// Fewest steps between captures.
        min_interval: u32,
        /// Steps after which a capture is due without an improvement.
        max_interval: u32,
        /// Relative improvement of the loss that makes a capture due early.
        improvement: f64,
        /// The loss may exceed the least of the last five by this factor.
        stable_ratio: f64,
        /// Steps after which a capture need not be stable.
        patience: u32,
        /// Steps for which a capture must prove itself before it replaces the last known good state.
        probation: u32,
    },
    /// Every so many steps, trusted at once.
    Every(u32),
}

impl Default for SnapshotPolicy {
    fn default() -> Self {
        Self::Adaptive {
            min_interval: 2,
            max_interval: 5,
            improvement: 0.01,
            stable_ratio: 1.1,
            patience: 15,
            probation: 2,
        }
    }
}

/// Where snapshots lie. Envs on a CPU keep theirs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotPlacement {
    /// On the device up to 16 MiB, else in pinned host memory.
    Auto,
    Device,
    PinnedHost,
}
