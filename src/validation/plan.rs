//! Which configurations of seeds the fused validation pass evaluates (spec 05 §10.1).

use smallvec::SmallVec;

/// What the coalition pass evaluates: bit `i` of a mask set = player `i` as it is now, clear = amplitude 0.
///
/// Masks are distinct; the first one has all players on, and its result is the validation result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoalitionPlan {
    /// Slot indices of the players, ascending.
    pub players: SmallVec<[usize; 4]>,
    pub masks: Vec<u64>,
}
