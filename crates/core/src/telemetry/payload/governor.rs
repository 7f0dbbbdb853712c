//! Events of the governor.

use serde::{Deserialize, Serialize};

use crate::telemetry::encoding::Num;

/// Kinds of unhealthy losses that a governor reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlarmKind {
    /// The validation loss isn't a finite number.
    NonFinite,
    /// A network that was better than chance guesses again.
    ChanceCollapse,
    /// The loss left everything that healthy steps showed.
    Divergence,
}

/// The consequences of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlarmVerdict {
    /// The env may neither plant nor commit.
    Suspect,
    /// The env is rolled back.
    Panic,
    /// The loss is accepted as the state of the host, because a rollback could only repeat the last one.
    Accepted,
}

/// A validation loss that is not healthy. Losses in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GovernorAlarm {
    /// The kind of the unhealthy loss.
    pub kind: AlarmKind,
    /// The consequence of the alarm.
    pub verdict: AlarmVerdict,
    /// The validation loss.
    pub loss: Num,
    /// Anomalies in a row, this one included.
    pub consecutive: u32,
    /// Anomalies in a row that lead to a panic.
    pub required: u32,
}

/// An env was restored to an earlier state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GovernorRollback {
    /// The kind of the unhealthy loss.
    pub kind: AlarmKind,
    /// Step whose state was restored; 0 is the fresh host.
    pub snapshot_step: u32,
    /// Steps between the restored state and the panic.
    pub steps_lost: u32,
}

/// A governor's counts in one episode; summed over envs per round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GovernorCounts {
    /// Steps with an unhealthy loss, including those of panics.
    pub anomalies: u32,
    /// Steps after which the governor rolled back an env, or would have if it were enabled.
    pub panics: u32,
}

added_by_field!(GovernorCounts: anomalies, panics);
