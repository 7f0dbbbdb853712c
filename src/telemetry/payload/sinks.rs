//! How the sinks are doing: `telemetry_health`.

use serde::{Deserialize, Serialize};

use crate::telemetry::encoding::Num;

/// What a sink may do when it cannot keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkClass {
    /// Loses nothing: the run waits for it.
    Durable,
    /// Never delays the run: step rows are dropped and counted.
    Live,
}

/// One sink since the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SinkHealth {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: SinkClass,
    /// Batches that wait for it.
    pub queued: u64,
    /// Batches that may wait for it.
    pub queue_cap: u64,
    /// Events that it took.
    pub written: u64,
    /// Events that it lost.
    pub dropped: u64,
    /// Time that flushes waited for this sink.
    pub blocked_ms: Num,
    /// Calls that failed.
    pub errors: u64,
    /// Its newest call failed: what it is sent is kept and tried again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failing: bool,
    /// The newest error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// What each sink wrote, lost and waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TelemetryHealth {
    /// In the order in which they were registered.
    pub sinks: Vec<SinkHealth>,
}

impl TelemetryHealth {
    /// Nothing was lost and nothing failed.
    pub fn is_clean(&self) -> bool {
        self.sinks.iter().all(|sink| sink.errors == 0 && sink.dropped == 0)
    }

    /// Events that any sink lost.
    pub fn dropped(&self) -> u64 {
        self.sinks.iter().map(|sink| sink.dropped).sum()
    }
}
