//! Anomalies: the findings of detectors.

use serde::{Deserialize, Serialize};

use crate::telemetry::encoding::Num;

/// The state of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnomalyState {
    /// The condition holds, and didn't before.
    Onset,
    /// The condition no longer holds.
    Cleared,
}

/// A condition that a detector looks for has begun, or is over. The event's message has its meaning and the remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anomaly {
    /// Name of the detector.
    pub rule: String,
    /// The state of the condition.
    pub state: AnomalyState,
    /// The measured value.
    pub value: Num,
    /// The threshold that it was compared with.
    pub threshold: Num,
    /// The head of the policy; absent for detectors that don't look at a head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}
