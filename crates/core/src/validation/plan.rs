//! The configurations of seeds that the fused validation pass evaluates.
//!
//! In: the slots' stages and amplitudes before validation, the attribution settings, the step. Out: a [`CoalitionPlan`]
//! for the forward pass, with what the attribution needs to read the results. Planned once per env and step, before
//! the first validation batch.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::growth::SeedStage;
use crate::random::{Domain, Draw, RunRng, derive};
use crate::scenario::{AttributionConfig, AttributionStrategy, Cadence};

/// Players up to which `auto` and `permutations` evaluate all 2^n configurations: 16 at most.
const FULL_FACTORIAL_MAX: usize = 4;
/// Players up to which `auto` evaluates all pairs.
const PAIRS_MAX: usize = 8;
/// Sampled orders for Shapley values of many players, in pairs of an order and its reverse: the standard error falls with their
/// root, the cost rises with their number.
const SAMPLED_ORDERS: usize = 20;
/// Players up to which all 2^n configurations aren't more than the distinct prefixes of that many orders, `2 + 20·(n − 1)`.
const EXACT_SHAPLEY_MAX: usize = 6;

/// A slot whose seed is on the output path and can be switched off in a coalition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Player {
    /// Index into the slot order.
    pub slot: usize,
    /// Stage of its seed.
    pub stage: SeedStage,
}

/// At most four seeds are usual; more spill to the heap.
pub type Players = SmallVec<[Player; 4]>;

/// The players among `(stage, alpha)` of each slot in slot order; `None` is an empty slot.
///
/// A training seed is never a player: its straight-through path leaves the output unchanged.
pub fn find_players(slots: impl IntoIterator<Item = Option<(SeedStage, f64)>>, include_committed: bool) -> Players {
    let plays = |stage, alpha| {
        alpha > 0.0
            && match stage {
                SeedStage::Blending | SeedStage::Holding => true,
                SeedStage::Committed => include_committed,
                _ => false,
            }
    };
    slots
        .into_iter()
        .enumerate()
        .filter_map(|(slot, seed)| {
            let (stage, alpha) = seed?;
            plays(stage, alpha).then_some(Player { slot, stage })
        })
        .collect()
}

/// Configurations of the coalition pass: bit `i` of a mask set = player `i` unchanged, clear = amplitude 0.
///
/// Masks are distinct; the first one has all players on, and its result is the validation result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoalitionPlan {
    /// Slot indices of the players, ascending.
    pub players: SmallVec<[usize; 4]>,
    /// One per configuration.
    pub masks: Vec<u64>,
}

impl CoalitionPlan {
    /// The mask with those players on whose slots `stay`.
    pub fn mask(&self, stay: impl Fn(usize) -> bool) -> u64 {
        let players = self.players.iter().enumerate();
        players
            .filter(|(_, slot)| stay(**slot))
            .fold(0, |mask, (player, _)| mask | 1 << player)
    }
}

/// A coalition plan with the data to read its results by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributionPlan {
    /// The evaluated configurations.
    pub coalitions: CoalitionPlan,
    /// The players that are committed: the mask of `committed_accuracy`.
    pub committed: u64,
    /// Sampled orders of players in antithetic pairs (an order, then its reverse); empty if Shapley values are exact
    /// or not requested.
    pub permutations: Vec<Vec<usize>>,
    /// Shapley values are reported: at the last step, and with the strategy `permutations` at every measurement.
    pub tells_shares: bool,
}

/// The moment of the run at which a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanMoment {
    /// 1-based.
    pub step: u32,
    /// The episode's last step: Shapley values are measured.
    pub is_final: bool,
    /// `derive(seed, AttributionPermutations, [round, env, step])`.
    pub permutation_seed: u64,
}

impl PlanMoment {
    /// The moment of a round, an env and a step.
    pub fn new(seed: u64, (round, env, step): (u32, usize, u32), is_final: bool) -> Self {
        let indices = [u64::from(round), env as u64, u64::from(step)];
        Self {
            step,
            is_final,
            permutation_seed: derive(seed, Domain::AttributionPermutations, &indices),
        }
    }
}

/// Plans one env's validation pass.
pub fn plan_coalitions(players: &[Player], config: &AttributionConfig, moment: PlanMoment) -> AttributionPlan {
    let count = players.len();
    let all = all_on(count);
    let members = |is_member: fn(SeedStage) -> bool| {
        (0..count)
            .filter(move |&i| is_member(players[i].stage))
            .map(|i| 1u64 << i)
    };
    let committed = members(|stage| stage == SeedStage::Committed).sum();
    let strategy = if is_due(config.cadence, moment) {
        config.strategy
    } else {
        AttributionStrategy::Off
    };

    let mut masks = vec![all];
    let mut permutations = Vec::new();
    if strategy != AttributionStrategy::Off {
        masks.extend((0..count).map(|i| all & !(1 << i)));
        masks.extend([0, committed]);
        // The coalitions that a commit of this step would leave.
        masks.extend(members(|stage| stage == SeedStage::Holding).map(|held| committed | held));
    }
    let is_sampled = match strategy {
        AttributionStrategy::Auto | AttributionStrategy::Permutations if count <= FULL_FACTORIAL_MAX => {
            masks.extend(0..=all);
            false
        }
        AttributionStrategy::Auto => {
            masks.extend((0..count).map(|i| 1 << i));
            if count <= PAIRS_MAX {
                masks.extend(pairs(count).map(|(i, j)| 1 << i | 1 << j));
            }
            moment.is_final
        }
        AttributionStrategy::Permutations => true,
        AttributionStrategy::AblationOnly | AttributionStrategy::Off => false,
    };
    if is_sampled && count <= EXACT_SHAPLEY_MAX {
        masks.extend(0..=all);
    } else if is_sampled {
        permutations = antithetic_permutations(count, moment.permutation_seed);
        masks.extend(permutations.iter().flat_map(|order| prefixes(order)));
    }

    // The masks in order of first mention.
    let mut mentioned = HashSet::new();
    masks.retain(|&mask| mentioned.insert(mask));
    AttributionPlan {
        coalitions: CoalitionPlan {
            players: players.iter().map(|player| player.slot).collect(),
            masks,
        },
        committed,
        permutations,
        tells_shares: moment.is_final || strategy == AttributionStrategy::Permutations,
    }
}

/// Most configurations that a plan over up to `slots` slots can have: the size of an env's read pack.
pub fn max_configurations(config: &AttributionConfig, slots: usize) -> usize {
    let bound = |players: usize| {
        let subsets = u32::try_from(players)
            .ok()
            .and_then(|players| 1_usize.checked_shl(players));
        let subsets = subsets.unwrap_or(usize::MAX);
        let is_full = match config.strategy {
            AttributionStrategy::Auto | AttributionStrategy::Permutations => players <= EXACT_SHAPLEY_MAX,
            AttributionStrategy::AblationOnly | AttributionStrategy::Off => false,
        };
        if is_full {
            return subsets;
        }
        // All, none, committed; leave-one-out, solo, committed with each held one; pairs; prefixes of permutations.
        let pairs = players * players.saturating_sub(1) / 2;
        let prefixes = SAMPLED_ORDERS * players.saturating_sub(1);
        subsets.min(3 + 3 * players + pairs + prefixes)
    };
    (0..=slots).map(bound).max().unwrap_or(1)
}

/// The mask with the lowest `count` players on.
pub(super) fn all_on(count: usize) -> u64 {
    debug_assert!(count <= 64, "a coalition mask has 64 bits");
    u64::MAX.checked_shr(64 - count as u32).unwrap_or(0)
}

/// All `(i, j)` with `i < j < count`, in order.
pub(super) fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |i| (i + 1..count).map(move |j| (i, j)))
}

/// The coalitions that form as an order's players join one by one.
fn prefixes(order: &[usize]) -> impl Iterator<Item = u64> + '_ {
    order.iter().scan(0u64, |coalition, &player| {
        *coalition |= 1 << player;
        Some(*coalition)
    })
}

fn is_due(cadence: Cadence, moment: PlanMoment) -> bool {
    match cadence {
        // Whether a seed has changed is known to who remembers the last measurement.
        Cadence::EveryStep | Cadence::OnChange => true,
        Cadence::EveryK(steps) => moment.is_final || moment.step.is_multiple_of(steps),
        Cadence::Terminal => moment.is_final,
    }
}

/// Pairs of an order and its reverse.
fn antithetic_permutations(count: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = RunRng::from_seed(seed);
    (0..SAMPLED_ORDERS / 2)
        .flat_map(|_| {
            let mut order: Vec<usize> = (0..count).collect();
            rng.shuffle(&mut order);
            let reverse = order.iter().rev().copied().collect();
            [order, reverse]
        })
        .collect()
}

#[cfg(test)]
mod tests;
