//! The action space: eight categorical heads, which of them matter to which operation, and the way from head indices
//! to commands and back (spec 03 §2).
//!
//! [`RELEVANCE`] is the only source of what matters: masks, controllers, learner and views read it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::choices::Choices;
use super::error::PolicyError;
use crate::growth::{
    AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleCommand, LifecycleOp, Tempo,
};

/// Number of heads.
pub const HEADS: usize = 8;
/// Number of lifecycle operations.
pub const OPS: usize = LifecycleOp::ALL.len();

/// One chosen member per head, in storage order; irrelevant heads hold their placeholder.
pub type HeadIndices = [u8; HEADS];

/// A categorical part of an action. The numbering is the storage order everywhere and fixed for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Head {
    Slot = 0,
    Blueprint = 1,
    Style = 2,
    Tempo = 3,
    AlphaTarget = 4,
    AlphaSpeed = 5,
    AlphaCurve = 6,
    Op = 7,
}

impl Head {
    /// In storage order.
    pub const ALL: [Self; HEADS] = [
        Self::Slot,
        Self::Blueprint,
        Self::Style,
        Self::Tempo,
        Self::AlphaTarget,
        Self::AlphaSpeed,
        Self::AlphaCurve,
        Self::Op,
    ];
    /// The heads whose members are the same for every slot, in storage order.
    pub const PARAMETERS: [Self; 5] = [
        Self::Style,
        Self::Tempo,
        Self::AlphaTarget,
        Self::AlphaSpeed,
        Self::AlphaCurve,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Slot => "slot",
            Self::Blueprint => "blueprint",
            Self::Style => "style",
            Self::Tempo => "tempo",
            Self::AlphaTarget => "alpha_target",
            Self::AlphaSpeed => "alpha_speed",
            Self::AlphaCurve => "alpha_curve",
            Self::Op => "op",
        }
    }

    /// Number of members, on a host with `slots` slots and a registry of `blueprints` blueprints.
    pub const fn size(self, slots: usize, blueprints: usize) -> usize {
        match self {
            Self::Slot => slots,
            Self::Blueprint => blueprints,
            Self::Style => GerminationStyle::ALL.len(),
            Self::Tempo => Tempo::ALL.len(),
            Self::AlphaTarget => AlphaTarget::ALL.len(),
            Self::AlphaSpeed => AlphaSpeed::ALL.len(),
            Self::AlphaCurve => AlphaCurveAction::ALL.len(),
            Self::Op => OPS,
        }
    }

    /// What the head holds where it does not matter; a slot's is the lowest enabled one.
    pub const fn placeholder(self, lowest_slot: usize) -> usize {
        match self {
            Self::Slot => lowest_slot,
            Self::Blueprint => 0,
            Self::Style => GerminationStyle::SigmoidAdd.code(),
            Self::Tempo => Tempo::Standard.code(),
            Self::AlphaTarget => AlphaTarget::Full.code(),
            Self::AlphaSpeed => AlphaSpeed::Instant.code(),
            Self::AlphaCurve => AlphaCurveAction::Linear.code(),
            Self::Op => LifecycleOp::Wait.code(),
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `RELEVANCE[op][head]`: the head influences the outcome of the op (spec 03 §2.4).
///
/// Columns in storage order: slot, blueprint, style, tempo, alpha target, alpha speed, alpha curve, op.
pub const RELEVANCE: [[bool; HEADS]; OPS] = {
    const Y: bool = true;
    const N: bool = false;
    [
        [N, N, N, N, N, N, N, Y], // wait
        [Y, Y, Y, Y, Y, N, N, Y], // germinate
        [Y, N, Y, N, Y, Y, Y, Y], // set alpha target
        [Y, N, N, N, N, Y, Y, Y], // prune
        [Y, N, N, N, N, N, N, Y], // fossilize
        [Y, N, N, N, N, N, N, Y], // advance
    ]
};

/// A head that is not relevant cannot influence the outcome and is fixed to its placeholder.
pub const fn relevant(op: LifecycleOp, head: Head) -> bool {
    RELEVANCE[op.code()][head as usize]
}

/// Some op of the step's op mask has the head relevant.
pub fn available(op_mask: Choices, head: Head) -> bool {
    LifecycleOp::ALL
        .iter()
        .any(|&op| op_mask.contains(op.code()) && relevant(op, head))
}

/// The head indices of a command, placeholders filled in.
///
/// A slot or blueprint that no head can hold becomes 255, which no mask allows.
pub fn indices_of(command: &LifecycleCommand, lowest_slot: usize) -> HeadIndices {
    let mut chosen = Head::ALL.map(|head| head.placeholder(lowest_slot));
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
        LifecycleCommand::Wait | LifecycleCommand::Fossilize { .. } | LifecycleCommand::Advance { .. } => {}
    }
    chosen.map(|index| u8::try_from(index).unwrap_or(u8::MAX))
}

/// The command that head indices stand for; irrelevant heads are not read.
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
        LifecycleOp::Fossilize => LifecycleCommand::Fossilize { slot },
        LifecycleOp::Advance => LifecycleCommand::Advance { slot },
    })
}

fn member<T>(head: Head, from_code: impl Fn(usize) -> Option<T>, index: usize) -> Result<T, PolicyError> {
    from_code(index).ok_or(PolicyError::NoSuchMember { head, index })
}

/// What a controller is told of its last command (spec 03 §6.1, features 16-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionFeedback {
    pub last_op: LifecycleOp,
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
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn head_sizes() {
        let sizes: usize = Head::ALL.iter().map(|head| head.size(3, 13)).sum();
        assert_eq!(sizes, 41);
    }

    #[test]
    fn distinct_commands_with_seven_blueprints() {
        let count = |slots: usize| -> usize {
            LifecycleOp::ALL
                .iter()
                .map(|&op| {
                    Head::ALL
                        .iter()
                        .filter(|&&head| head != Head::Op && relevant(op, head))
                        .map(|head| head.size(slots, 7))
                        .product::<usize>()
                })
                .sum()
        };
        assert_eq!([count(1), count(3), count(10)], [515, 1543, 5141]);
    }

    #[test]
    fn a_wait_stores_placeholders() {
        assert_eq!(indices_of(&LifecycleCommand::Wait, 0), [0, 0, 2, 1, 2, 0, 0, 0]);
        assert_eq!(indices_of(&LifecycleCommand::Wait, 2), [2, 0, 2, 1, 2, 0, 0, 0]);
    }

    #[test]
    fn every_command_survives_the_way_through_its_indices() {
        let mut distinct = HashSet::new();
        let fixed = [3, 8, 4, 3, 3, 4, 5, 6];
        let combinations: usize = fixed.iter().product();
        for mut number in 0..combinations {
            let indices = fixed.map(|size| {
                let index = number % size;
                number /= size;
                index as u8
            });
            let command = command_of(&indices).unwrap();
            let canonical = indices_of(&command, 0);
            assert_eq!(command_of(&canonical).unwrap(), command);
            for head in Head::ALL {
                if relevant(command.op(), head) {
                    assert_eq!(canonical[head as usize], indices[head as usize]);
                }
            }
            distinct.insert(canonical);
        }
        // 8 blueprints here, the unselectable first included: 288 instead of 252 germinations a slot.
        assert_eq!(distinct.len(), 1 + 3 * (514 + 36));
    }

    #[test]
    fn an_index_beyond_its_head_is_an_error() {
        let mut indices = indices_of(&LifecycleCommand::Wait, 0);
        indices[Head::Op as usize] = 6;
        assert_eq!(
            command_of(&indices),
            Err(PolicyError::NoSuchMember {
                head: Head::Op,
                index: 6
            })
        );
    }

    #[test]
    fn heads_are_available_where_a_valid_op_needs_them() {
        let available_heads = |ops: &[LifecycleOp]| -> Vec<Head> {
            let mask = ops.iter().map(|op| op.code()).collect();
            Head::ALL.into_iter().filter(|&head| available(mask, head)).collect()
        };
        use LifecycleOp::*;
        assert_eq!(available_heads(&[Wait]), [Head::Op]);
        assert_eq!(
            available_heads(&[Wait, Germinate]),
            [
                Head::Slot,
                Head::Blueprint,
                Head::Style,
                Head::Tempo,
                Head::AlphaTarget,
                Head::Op
            ]
        );
        assert_eq!(
            available_heads(&[Wait, Prune, Advance]),
            [Head::Slot, Head::AlphaSpeed, Head::AlphaCurve, Head::Op]
        );
    }
}
