//! Conversion of head indices to commands and back.

use super::error::PolicyError;
use super::heads::{Head, HeadIndices, relevant};
use crate::growth::{
    AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleCommand, LifecycleOp, Tempo,
};
use crate::telemetry::{Choice, Num};

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

/// The command that head indices encode. Irrelevant heads aren't read.
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

/// Choices of a command by the heads that matter to it. `blueprint_name` turns its blueprint index into an id.
pub fn choice_of(command: &LifecycleCommand, blueprint_name: impl Fn(usize) -> String) -> Choice {
    let (op, indices) = (command.op(), indices_of(command));
    let index = |head: Head| relevant(op, head).then_some(usize::from(indices[head as usize]));
    let target = index(Head::AlphaTarget).and_then(AlphaTarget::from_code);
    Choice {
        blueprint: index(Head::Blueprint).map(blueprint_name),
        style: index(Head::Style).and_then(GerminationStyle::from_code),
        tempo: index(Head::Tempo).and_then(Tempo::from_code),
        alpha_target: target.map(|target| Num(target.value())),
        alpha_speed: index(Head::AlphaSpeed).and_then(AlphaSpeed::from_code),
        alpha_curve: index(Head::AlphaCurve).and_then(AlphaCurveAction::from_code),
    }
}

fn member<T>(head: Head, from_code: impl Fn(usize) -> Option<T>, index: usize) -> Result<T, PolicyError> {
    from_code(index).ok_or(PolicyError::NoSuchMember { head, index })
}

#[cfg(test)]
mod tests;
