//! How the sinks are doing (spec 07 §5.1 `telemetry_health`).

use serde::{Deserialize, Serialize};

use super::encoding::Num;
use super::sink::SinkClass;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SinkHealth {
    pub name: String,
    pub class: SinkClass,
    /// Batches.
    pub queued: u64,
    pub queue_cap: u64,
    /// Events.
    pub written: u64,
    pub dropped: u64,
    /// Time that flushes waited for this sink.
    pub blocked_ms: Num,
    pub errors: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TelemetryHealth {
    pub sinks: Vec<SinkHealth>,
}

impl TelemetryHealth {
    /// Nothing was lost and nothing failed.
    pub fn is_clean(&self) -> bool {
        self.sinks.iter().all(|sink| sink.errors == 0 && sink.dropped == 0)
    }

    pub fn dropped(&self) -> u64 {
        self.sinks.iter().map(|sink| sink.dropped).sum()
    }
}
