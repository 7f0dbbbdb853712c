//! What a controller orders for an env, and the way from head indices to commands and back.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::error::PolicyError;
use super::heads::{HEADS, Head, HeadIndices, OPS};
use super::masks::MaskSet;
use crate::growth::{
    AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleCommand, LifecycleOp, Tempo,
};

/// What a controller orders for one env, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The op with its slot and parameters.
    pub command: LifecycleCommand,
    /// The command as head indices, placeholders filled in.
    pub indices: HeadIndices,
    /// There was nothing to choose.
    pub forced: bool,
    /// A few words for telemetry.
    pub reason: Cow<'static, str>,
    /// Probabilities and value of a learned controller; `None` for any other.
    pub sample: Option<Sample>,
}

impl Decision {
    /// A decision without a sample; `masks` are those of the env, and say whether it was forced.
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

/// Probabilities, entropies and value behind a learned decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// By head: natural logarithm of the chosen member's probability, floor included; 0 where the head does not matter.
    pub log_probs: [f32; HEADS],
    /// By head: entropy of the chosen branch over ln(valid members), in [0, 1]; 0 where the head does not matter.
    pub entropies: [f32; HEADS],
    /// By op, floor included.
    pub op_probabilities: [f32; OPS],
    /// Output of the value head, in normalised units.
    pub value: f32,
}

/// The head indices of a command, placeholders filled in.
///
/// A slot or blueprint that no head can hold becomes 255, which no mask allows.
pub fn indices_of(command: &LifecycleCommand) -> HeadIndices {
    let mut chosen = Head::ALL.map(Head::placeholder);
    chosen[Head::Op as usize] = command.op().code();
    if let Some(slot) = command.slot() {
        chosen[Head::Slot as usize] = slot;
    }
    match *command {
        LifecycleCommand::Germinate {
            blueprint,
            style,
            tempo,
            target,
            ..
        } => {
            chosen[Head::Blueprint as usize] = blueprint;
            chosen[Head::Style as usize] = style.code();
            chosen[Head::Tempo as usize] = tempo.code();
            chosen[Head::AlphaTarget as usize] = target.code();
        }
        LifecycleCommand::SetAlphaTarget {
            style,
            target,
            speed,
            curve,
            ..
        } => {
            chosen[Head::Style as usize] = style.code();
            chosen[Head::AlphaTarget as usize] = target.code();
            chosen[Head::AlphaSpeed as usize] = speed.code();
            chosen[Head::AlphaCurve as usize] = curve.code();
        }
        LifecycleCommand::Prune { speed, curve, .. } => {
            chosen[Head::AlphaSpeed as usize] = speed.code();
            chosen[Head::AlphaCurve as usize] = curve.code();
        }
        LifecycleCommand::Wait | LifecycleCommand::Commit { .. } | LifecycleCommand::Advance { .. } => {}
    }
    chosen.map(|index| u8::try_from(index).unwrap_or(u8::MAX))
}

/// The command that head indices encode; irrelevant heads are not read.
///
/// # Errors
/// An index beyond a fixed head. Slots and blueprints are checked by the masks.
pub fn command_of(indices: &HeadIndices) -> Result<LifecycleCommand, PolicyError> {
    let index = |head: Head| usize::from(indices[head as usize]);
    let slot = index(Head::Slot);
    let style = || member(Head::Style, GerminationStyle::from_code, index(Head::Style));
    let tempo = || member(Head::Tempo, Tempo::from_code, index(Head::Tempo));
    let target = || member(Head::AlphaTarget, AlphaTarget::from_code, index(Head::AlphaTarget));
    let speed = || member(Head::AlphaSpeed, AlphaSpeed::from_code, index(Head::AlphaSpeed));
    let curve = || member(Head::AlphaCurve, AlphaCurveAction::from_code, index(Head::AlphaCurve));
    Ok(match member(Head::Op, LifecycleOp::from_code, index(Head::Op))? {
        LifecycleOp::Wait => LifecycleCommand::Wait,
        LifecycleOp::Germinate => LifecycleCommand::Germinate {
            slot,
            blueprint: index(Head::Blueprint),
            style: style()?,
            tempo: tempo()?,
            target: target()?,
        },
        LifecycleOp::SetAlphaTarget => LifecycleCommand::SetAlphaTarget {
            slot,
            style: style()?,
            target: target()?,
            speed: speed()?,
            curve: curve()?,
        },
        LifecycleOp::Prune => LifecycleCommand::Prune {
            slot,
            speed: speed()?,
            curve: curve()?,
        },
        LifecycleOp::Commit => LifecycleCommand::Commit { slot },
        LifecycleOp::Advance => LifecycleCommand::Advance { slot },
    })
}

fn member<T>(head: Head, from_code: impl Fn(usize) -> Option<T>, index: usize) -> Result<T, PolicyError> {
    from_code(index).ok_or(PolicyError::NoSuchMember { head, index })
}

/// The last command as the next observation shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionFeedback {
    /// Its op.
    pub last_op: LifecycleOp,
    /// It was carried out.
    pub last_ok: bool,
}

impl Default for ActionFeedback {
    /// As at the start of an episode.
    fn default() -> Self {
        Self {
            last_op: LifecycleOp::Wait,
            last_ok: true,
        }
    }
}

#[cfg(test)]
mod tests;
