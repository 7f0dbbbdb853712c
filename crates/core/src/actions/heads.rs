//! The action space: eight categorical heads, which of them matter to which operation, and the conversion of head indices
//! to commands and back.
//!
//! [`RELEVANCE`] is the only source of this information. Masks, controllers, the learner and views read it.

use super::choices::Choices;
use crate::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleOp, Tempo, coded_enum};

/// Number of heads.
pub const HEADS: usize = Head::ALL.len();
/// Number of lifecycle operations.
pub const OPS: usize = LifecycleOp::ALL.len();

/// One chosen member per head, in storage order. Irrelevant heads hold their placeholder.
pub type HeadIndices = [u8; HEADS];

coded_enum! {
    /// A categorical part of an action. The numbering is the storage order everywhere and fixed for ever.
    Head {
        /// Slot of the op.
        Slot = 0 => "slot",
        /// Blueprint of a germination, by index in the registry.
        Blueprint = 1 => "blueprint",
        /// Curve and operator of a first blend, or only the operator of a later ramp.
        Style = 2 => "style",
        /// Length of a first blend, 3 to 8 steps.
        Tempo = 3 => "tempo",
        /// Amplitude to blend to, 0.5 to 1.
        AlphaTarget = 4 => "alpha_target",
        /// Length of a later ramp, 0 to 8 steps.
        AlphaSpeed = 5 => "alpha_speed",
        /// Curve of a later ramp.
        AlphaCurve = 6 => "alpha_curve",
        /// The op itself; matters to every action.
        Op = 7 => "op",
    }
}

impl Head {
    /// The heads that have the same members for every slot, in storage order.
    pub const PARAMETERS: [Self; 5] = [
        Self::Style,
        Self::Tempo,
        Self::AlphaTarget,
        Self::AlphaSpeed,
        Self::AlphaCurve,
    ];

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

    /// Names of the members by index. `slots` and `blueprints` are those of the host and the registry.
    pub fn members<'a>(self, slots: &'a [String], blueprints: &'a [String]) -> Vec<&'a str> {
        match self {
            Self::Slot => slots.iter().map(String::as_str).collect(),
            Self::Blueprint => blueprints.iter().map(String::as_str).collect(),
            Self::Style => GerminationStyle::ALL.iter().map(|member| member.name()).collect(),
            Self::Tempo => Tempo::ALL.iter().map(|member| member.name()).collect(),
            Self::AlphaTarget => AlphaTarget::ALL.iter().map(|member| member.name()).collect(),
            Self::AlphaSpeed => AlphaSpeed::ALL.iter().map(|member| member.name()).collect(),
            Self::AlphaCurve => AlphaCurveAction::ALL.iter().map(|member| member.name()).collect(),
            Self::Op => LifecycleOp::ALL.iter().map(|member| member.name()).collect(),
        }
    }

    /// Value of the head if it doesn't matter.
    pub const fn placeholder(self) -> usize {
        match self {
            Self::Slot | Self::Blueprint => 0,
            Self::Style => GerminationStyle::SigmoidAdd.code(),
            Self::Tempo => Tempo::Standard.code(),
            Self::AlphaTarget => AlphaTarget::Full.code(),
            Self::AlphaSpeed => AlphaSpeed::Instant.code(),
            Self::AlphaCurve => AlphaCurveAction::Linear.code(),
            Self::Op => LifecycleOp::Wait.code(),
        }
    }
}

/// `RELEVANCE[op][head]`: the head influences the outcome of the op.
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
        [Y, N, N, N, N, N, N, Y], // commit
        [Y, N, N, N, N, N, N, Y], // advance
    ]
};

/// Returns whether the head is relevant to the op. An irrelevant head can't influence the outcome and is fixed to its
/// placeholder.
pub const fn relevant(op: LifecycleOp, head: Head) -> bool {
    RELEVANCE[op.code()][head as usize]
}

/// Returns whether the head is relevant to some op of the step's op mask.
pub fn available(op_mask: Choices, head: Head) -> bool {
    LifecycleOp::ALL
        .iter()
        .any(|&op| op_mask.contains(op.code()) && relevant(op, head))
}

#[cfg(test)]
mod tests;
