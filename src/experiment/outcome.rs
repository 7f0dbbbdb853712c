//! What came of the replicates: the raw values that every statistic is made from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::Design;
use crate::compare::TrainingRecord;
use crate::scenario::DeviceSpec;
use crate::telemetry::BigInteger;

/// What a training was given. All arms of a comparison are given the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Episodes of all envs.
    pub episodes: u64,
    /// Steps of all envs.
    pub env_steps: u64,
    /// Updates of the policy.
    pub updates: u64,
}

/// One training of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmResult {
    /// Of the arm.
    pub id: String,
    /// `run.seed`.
    pub seed: BigInteger,
    /// Env `k` was on device `k`, going round.
    pub devices: Vec<DeviceSpec>,
    /// Whether its controller learns.
    pub learns: bool,
    /// What it was given.
    pub budget: Budget,
    /// Of the data that it was scored on.
    pub data_hash: String,
    /// What came of it, with the episodes that it is scored by.
    pub training: TrainingRecord,
}

/// One training of every arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplicateResult {
    /// From 0.
    pub replicate: u32,
    /// Why it is missing from all statistics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Of each round, the indices of the arms in the order in which they took their turns.
    pub orders: Vec<Vec<usize>>,
    /// In the order of the design; none of a replicate that failed.
    pub arms: Vec<ArmResult>,
    /// Build, libraries, machine and precision, as the manifest of the first arm has them.
    pub fingerprint: Value,
}

/// An experiment so far: what was declared and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What was declared.
    pub design: Design,
    /// Those that have ended, in order.
    pub replicates: Vec<ReplicateResult>,
}
