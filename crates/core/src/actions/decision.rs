//! Orders of a controller for an env, and its view of the previous order.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::commands::indices_of;
use super::heads::{HEADS, HeadIndices, OPS};
use super::masks::MaskSet;
use crate::growth::{LifecycleCommand, LifecycleOp};

/// A controller's order for one env, and its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The op with its slot and parameters.
    pub command: LifecycleCommand,
    /// The command as head indices, placeholders filled in.
    pub indices: HeadIndices,
    /// True if there was nothing to choose.
    pub forced: bool,
    /// A few words for telemetry.
    pub reason: Cow<'static, str>,
    /// Probabilities and value of a learned controller; `None` for any other.
    pub sample: Option<Sample>,
}

impl Decision {
    /// Creates a decision without a sample. `masks` are those of the env, and determine whether it was forced.
    pub fn new(command: LifecycleCommand, masks: &MaskSet, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            command,
            indices: indices_of(&command),
            forced: masks.is_forced(),
            reason: reason.into(),
            sample: None,
        }
    }
}

/// Probabilities and value from which a learned decision was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// By head: natural logarithm of the chosen member's probability, floor included. 0 if the head doesn't matter.
    pub log_probs: [f32; HEADS],
    /// Probabilities by op, floor included.
    pub op_probabilities: [f32; OPS],
    /// Output of the value head, in normalised units.
    pub value: f32,
}

/// The last command as the next observation shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionFeedback {
    /// Its op.
    pub last_op: LifecycleOp,
    /// True if it was carried out.
    pub last_ok: bool,
}

impl Default for ActionFeedback {
    /// The value at the start of an episode.
    fn default() -> Self {
        Self {
            last_op: LifecycleOp::Wait,
            last_ok: true,
        }
    }
}
