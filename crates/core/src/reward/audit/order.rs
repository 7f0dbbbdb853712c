//! What a script of an audit orders.

use crate::growth::{AlphaCurveAction, AlphaSpeed, LifecycleCommand};

/// The speed and curve of every prune and ramp.
pub const AT_ONCE: (AlphaSpeed, AlphaCurveAction) = (AlphaSpeed::Instant, AlphaCurveAction::Linear);

/// What a seed is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    Helpful,
    Harmful,
    Hostage,
}

/// A command, and what the seed is worth that it germinates.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub command: LifecycleCommand,
    pub nature: Nature,
}

impl Order {
    pub const fn of(command: LifecycleCommand) -> Self {
        Self {
            command,
            nature: Nature::Helpful,
        }
    }

    pub const WAIT: Self = Self::of(LifecycleCommand::Wait);
}
