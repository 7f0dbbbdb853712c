//! The event: an envelope around one of a fixed set of payloads, and the table that says with which severity each is emitted.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::encoding::{Timestamp, round_if_any};
use super::payload::*;
use crate::growth::SlotId;

/// Schema of every file of events; readers refuse any other. It grows with every type or field that is added, renamed or removed.
pub const SCHEMA: u32 = 1;

/// The importance of an event to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// An event only for a close look.
    Debug,
    /// The usual course of a run.
    Info,
    /// Something may be wrong.
    Warning,
    /// Something has failed.
    Error,
    /// Work was lost.
    Critical,
}

impl Severity {
    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// A row of the catalogue of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EventKind {
    /// The `type` in files.
    pub name: &'static str,
    /// The content, in a few words.
    pub summary: &'static str,
}

/// Declares the payload enum and ties each variant to its name in files, its usual severity and a line about it.
macro_rules! payloads {
    ($($variant:ident => $kind:literal, $severity:ident: $summary:literal;)+) => {
        /// The data of an event. The variants are the whole catalogue, without a free-form event.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Payload {
            $(#[doc = concat!("`", $kind, "`: ", $summary, ".")] $variant($variant)),+
        }

        impl Payload {
            /// The `type` of every event, in catalogue order.
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// All kinds of events, in catalogue order.
            pub const CATALOGUE: &'static [EventKind] = &[$(EventKind {
                name: $kind,
                summary: $summary,
            }),+];

            const fn usual_severity(&self) -> Severity {
                match self { $(Self::$variant(_) => Severity::$severity),+ }
            }

            /// The event's `type`.
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind),+ }
            }

            /// Reads the payload of an event of type `kind`; `None` if there is no such type.
            fn from_text(kind: &str, data: &str) -> Option<Result<Self, serde_json::Error>> {
                match kind {
                    $($kind => Some(serde_json::from_str(data).map(Self::$variant)),)+
                    _ => None,
                }
            }
        }

        $(impl From<$variant> for Payload {
            fn from(data: $variant) -> Self {
                Self::$variant(data)
            }
        })+
    };
}

payloads! {
    RunStarted => "run_started", Info: "the configuration of a run that begins";
    RunFinished => "run_finished", Info: "how the run ended";
    CheckpointSaved => "checkpoint_saved", Info: "a checkpoint is on disk";
    CheckpointLoaded => "checkpoint_loaded", Info: "a run was resumed from a checkpoint";
    BaselineMeasured => "baseline_measured", Info: "what the host reaches without growth";
    Note => "note", Info: "the changes in a resumed run, or the answer to a command";
    UserEvent => "user_event", Info: "an event that a plugin defines";
    EnvStep => "env_step", Info: "losses, accuracies and seeds of an env after a step";
    Decision => "decision", Debug: "a controller's order, its reason and its reward";
    HostStabilized => "host_stabilized", Info: "the host has settled: seeds may germinate";
    EpisodeFinished => "episode_finished", Info: "how an episode of an env ended";
    SeedGerminated => "seed_germinated", Info: "a seed was planted";
    SeedStageChanged => "seed_stage_changed", Info: "a seed entered another stage";
    AlphaRampStarted => "alpha_ramp_started", Info: "a ramp of a seed's amplitude began";
    SeedGateEvaluated => "seed_gate_evaluated", Debug: "a gate was checked: values and thresholds";
    SeedCommitted => "seed_committed", Info: "a seed was committed";
    SeedPruned => "seed_pruned", Info: "a seed was removed";
    CounterfactualMatrix => "counterfactual_matrix", Info: "accuracy and loss of every measured coalition of seeds";
    Shapley => "shapley", Info: "each seed's share of what all seeds add, at the end of an episode";
    GovernorAlarm => "governor_alarm", Warning: "a loss that is out of bounds";
    GovernorRollback => "governor_rollback", Critical: "an env was restored to its last good state";
    LearnerUpdate => "learner_update", Info: "an update of the policy, performed or skipped";
    RoundFinished => "round_finished", Info: "the results of a round over all envs";
    Anomaly => "anomaly", Warning: "a problem that a detector looks for has begun, or is over";
}

impl Payload {
    /// Rows that come every step; a live sink under pressure may miss them.
    pub const fn is_step_row(&self) -> bool {
        matches!(self, Self::EnvStep(_) | Self::Decision(_))
    }

    /// The severity of the event unless its producer knows better ([`Event::severity`]).
    pub fn severity(&self) -> Severity {
        match self {
            Self::RunFinished(run) if run.status == RunState::Failed => Severity::Error,
            usual => usual.usual_severity(),
        }
    }
}

/// Position of an env in the run; no event of an env can be built without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvContext {
    /// Index in the run.
    pub env: u32,
    /// `round * n_envs + env`.
    pub episode: u32,
    /// 0-based.
    pub round: u32,
    /// 1-based.
    pub step: u32,
}

/// One thing that happened. `seq` and `t` are set by the hub when it takes the event from the outbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Position in the run's record, from 0.
    pub seq: u64,
    /// The time of the flush.
    pub t: Timestamp,
    /// The importance to a person.
    pub severity: Severity,
    /// 0-based; absent for events of the run.
    pub round: Option<u32>,
    /// Index of the env; absent for events of the run or a round.
    pub env: Option<u32>,
    /// `round * n_envs + env`.
    pub episode: Option<u32>,
    /// 1-based.
    pub step: Option<u32>,
    /// Absent where it is about no slot.
    pub slot: Option<SlotId>,
    /// `e{episode}.{slot}.{n}`.
    pub seed_id: Option<String>,
    /// A text for people.
    pub message: Option<String>,
    /// The event's data.
    pub payload: Payload,
}

impl Event {
    /// An event of the run as a whole.
    pub fn run(payload: impl Into<Payload>) -> Self {
        let payload = payload.into();
        Self {
            seq: 0,
            t: Timestamp::EPOCH,
            severity: payload.severity(),
            round: None,
            env: None,
            episode: None,
            step: None,
            slot: None,
            seed_id: None,
            message: None,
            payload,
        }
    }

    /// An event of one round over all envs.
    pub fn round(round: u32, payload: impl Into<Payload>) -> Self {
        Self {
            round: Some(round),
            ..Self::run(payload)
        }
    }

    /// An event of one env.
    pub fn env(context: EnvContext, payload: impl Into<Payload>) -> Self {
        Self {
            env: Some(context.env),
            episode: Some(context.episode),
            step: Some(context.step),
            ..Self::round(context.round, payload)
        }
    }

    /// An event of the seed in one slot of an env.
    pub fn seed(context: EnvContext, slot: SlotId, seed_id: impl Into<String>, payload: impl Into<Payload>) -> Self {
        Self {
            slot: Some(slot),
            seed_id: Some(seed_id.into()),
            ..Self::env(context, payload)
        }
    }

    /// Adds a text for people; never the only carrier of a number.
    pub fn message(mut self, text: impl Into<String>) -> Self {
        self.message = Some(text.into());
        self
    }

    /// Replaces the severity of the table, e.g. for a gate whose verdict flipped.
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The position of the event's env; `None` for an event of the run or of a round.
    pub fn context(&self) -> Option<EnvContext> {
        Some(EnvContext {
            env: self.env?,
            episode: self.episode?,
            round: self.round?,
            step: self.step?,
        })
    }

    /// Run before round before env index: the order of events within one flush.
    pub(super) fn scope(&self) -> u64 {
        match (self.round, self.env) {
            (_, Some(env)) => 2 + u64::from(env),
            (Some(_), None) => 1,
            (None, None) => 0,
        }
    }
}

/// A line of a file. What is not there is left out, the severity where it is the payload's usual one.
#[derive(Serialize, Deserialize)]
struct Line<'a, Data> {
    seq: u64,
    t: Timestamp,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default, rename = "sev", skip_serializing_if = "Option::is_none")]
    severity: Option<Severity>,
    #[serde(default, deserialize_with = "round_if_any", skip_serializing_if = "Option::is_none")]
    round: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    env: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    episode: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slot: Option<SlotId>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    seed_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "msg", skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
    data: Data,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = Line {
            seq: self.seq,
            t: self.t,
            kind: self.payload.kind().into(),
            severity: (self.severity != self.payload.severity()).then_some(self.severity),
            round: self.round,
            env: self.env,
            episode: self.episode,
            step: self.step,
            slot: self.slot,
            seed_id: self.seed_id.as_deref().map(Cow::from),
            message: self.message.as_deref().map(Cow::from),
            data: &self.payload,
        };
        line.serialize(serializer)
    }
}

/// Reads only from text: the payload is read once its type is known.
impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = Line::<&RawValue>::deserialize(deserializer)?;
        let payload = Payload::from_text(&line.kind, line.data.get())
            .ok_or_else(|| D::Error::unknown_variant(&line.kind, Payload::KINDS))?
            .map_err(|error| D::Error::custom(format!("{}: {error}", line.kind)))?;
        Ok(Self {
            seq: line.seq,
            t: line.t,
            severity: line.severity.unwrap_or(payload.severity()),
            round: line.round,
            env: line.env,
            episode: line.episode,
            step: line.step,
            slot: line.slot,
            seed_id: line.seed_id.map(Cow::into_owned),
            message: line.message.map(Cow::into_owned),
            payload,
        })
    }
}

#[cfg(test)]
mod tests;
