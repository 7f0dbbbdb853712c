//! The rewards of the prior art. Each file declares a reward and its settings, and computes its pay. [`memory`] has the state of
//! an episode that they all share.

mod memory;
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
use self::minimal::MinimalReward;
use self::shaped::ShapedReward;
use self::simplified::SimplifiedReward;
use crate::prelude::*;

/// Adds all of them.
pub fn register(modes: &mut RewardModes) {
    modes.register_with(
        "shaped",
        "at every step, the contribution of committed seeds minus rent, shaped towards committing",
        |settings: ShapedReward| Arc::new(settings),
    );
    modes.register_with(
        "escrow",
        "at every step, a credit that follows the contribution of growing seeds, kept only by a commit",
        |settings: EscrowReward| Arc::new(settings),
    );
    modes.register(
        "simplified",
        "stage potentials and final accuracy, no rent, for diagnosis",
        Arc::new(SimplifiedReward),
    );
    modes.register(
        "basic",
        "a bonus per commit, accuracy gained at the end, linear rent",
        Arc::new(BasicReward),
    );
    modes.register(
        "basic_plus",
        "basic, with most of the bonus paid while the seed contributes",
        Arc::new(BasicPlusReward),
    );
    modes.register(
        "minimal",
        "sparse, and a penalty for pruning early",
        Arc::new(MinimalReward),
    );
}
