//! Events of the governor (spec 07 §5.5).

use serde::{Deserialize, Serialize};

use crate::growth::SlotId;
use crate::telemetry::encoding::{ActionId, Num};

/// What a governor saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlarmKind {
    /// The validation loss is no finite number.
    NonFinite,
    /// A network that was better than chance guesses again.
    ChanceCollapse,
    /// The loss left everything that healthy steps showed.
    Divergence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlarmVerdict {
    Suspect,
    Panic,
}

/// A validation loss that is not healthy. Losses in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GovernorAlarm {
    pub kind: AlarmKind,
    pub verdict: AlarmVerdict,
    pub loss: Num,
    /// What the loss was compared with; absent for a loss that is no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Num>,
    /// Of the healthy losses remembered; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std: Option<Num>,
    /// Anomalies in a row, this one included.
    pub consecutive: u32,
    /// Anomalies in a row that make a panic.
    pub required: u32,
}

/// An env was restored to an earlier state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GovernorRollback {
    pub kind: AlarmKind,
    pub loss: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Num>,
    pub consecutive: u32,
    /// Step whose state was restored; 0 is the fresh host.
    pub snapshot_step: u32,
    pub steps_lost: u32,
    /// The last executed action of the episode; absent if the first step panicked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
    pub penalty_raw: Num,
    /// What a learner wrote into its buffer; absent where no transition could be blamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty_applied: Option<Num>,
    pub steps_forfeited: u32,
    pub seeds_pruned: Vec<SlotId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotAction {
    Capture,
    Promote,
    Discard,
}

/// Why a state was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotTrigger {
    /// The longest interval has passed.
    Due,
    /// The loss improved.
    Improved,
    /// A seed was committed in this step.
    Commit,
    /// The episode began.
    Initial,
    /// It has been too long, however rough the loss is.
    Patience,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotPlace {
    Device,
    PinnedHost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GovernorSnapshot {
    pub action: SnapshotAction,
    pub trigger: SnapshotTrigger,
    pub bytes: u64,
    pub placement: SnapshotPlace,
}

/// What a governor did in one episode; summed over envs per round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GovernorCounts {
    pub steps_lost: u32,
    pub snapshot_captures: u32,
    pub snapshot_promotions: u32,
    pub snapshot_discards: u32,
}

impl std::ops::AddAssign for GovernorCounts {
    fn add_assign(&mut self, other: Self) {
        self.steps_lost += other.steps_lost;
        self.snapshot_captures += other.snapshot_captures;
        self.snapshot_promotions += other.snapshot_promotions;
        self.snapshot_discards += other.snapshot_discards;
    }
}
