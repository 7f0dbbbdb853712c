//! The rewards of the prior art. Each is declared, with what may be set of it, beside what it pays; what they all remember of an
//! episode is [`memory`]'s.

mod memory;
mod settings;
mod attribution;
mod costs;
mod shaped;
mod escrow;
mod simplified;
mod basic;
mod minimal;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

use self::basic::{BasicPlusReward, BasicReward};
use self::escrow::EscrowReward;
use self::memory::Remembering;
use self::minimal::MinimalReward;
use self::settings::ShapedReward;
use self::simplified::SimplifiedReward;
use crate::prelude::*;

/// Adds all of them.
pub fn register(modes: &mut RewardModes) {
    modes.register_with(
        "shaped",
        "every step: contribution of committed seeds less rent, shaped towards committing",
        |settings: ShapedReward| Arc::new(Remembering(settings)),
    );
    modes.register_with(
        "escrow",
        "every step: a credit that follows what growing seeds contribute and is kept by committing alone",
        |settings: EscrowReward| Arc::new(Remembering(settings)),
    );
    modes.register_with(
        "simplified",
        "stage potentials and final accuracy, no rent: for diagnosis",
        |settings: SimplifiedReward| Arc::new(Remembering(settings)),
    );
    modes.register_with(
        "basic",
        "a bonus per commit, accuracy gained at the end, linear rent",
        |settings: BasicReward| Arc::new(Remembering(settings)),
    );
    modes.register_with(
        "basic_plus",
        "basic, with most of the bonus paid while the seed contributes",
        |settings: BasicPlusReward| Arc::new(Remembering(settings)),
    );
    modes.register_with(
        "minimal",
        "sparse, and a penalty for pruning early",
        |settings: MinimalReward| Arc::new(settings),
    );
}
