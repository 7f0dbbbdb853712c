//! The parts of a reward: signed terms whose sum it is, and two numbers that explain them.

use serde::{Deserialize, Serialize};

/// Declares the terms in the order in which they are added up.
macro_rules! terms {
    ($($(#[$doc:meta])* $term:ident => $name:literal),+ $(,)?) => {
        /// One part of a reward, stored with the sign with which it enters the sum.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Term { $($(#[$doc])* $term),+ }

        impl Term {
            /// All terms, in the order of the sum.
            pub const ALL: &'static [Self] = &[$(Self::$term),+];

            /// The name that telemetry prints.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$term => $name),+ }
            }
        }
    };
}

terms! {
    /// Change of the accuracy with committed seeds alone.
    CommittedChange => "committed_change",
    /// Lent for what growing seeds would add, and paid back.
    Loan => "loan",
    /// Contributions of growing seeds in this step.
    Attribution => "attribution",
    /// Earnings of committed seeds.
    CommittedAttribution => "committed_attribution",
    /// Change of a growing seed's credit; what it kept if it was committed.
    EscrowPayment => "escrow_payment",
    /// Harm that a growing seed did.
    EscrowHarm => "escrow_harm",
    /// Change of the validation loss.
    LossDelta => "loss_delta",
    /// Loss with committed seeds alone against the one that was paid for, at the end.
    LossSettlement => "loss_settlement",
    /// Bonus of a commit, in the basic modes.
    CommitBonus => "commit_bonus",
    /// Instalments of such a bonus.
    Drip => "drip",
    /// The reward of the sparse modes.
    SparseOutcome => "sparse_outcome",
    /// Accuracy of the last step.
    TerminalAccuracy => "terminal_accuracy",
    /// Accuracy gained since the first step.
    TerminalGain => "terminal_gain",
    /// Commits that contribute.
    TerminalCommit => "terminal_commit",
    /// Fall of the loss on its way to the target.
    TerminalLoss => "terminal_loss",
    /// Potential-based shaping.
    Pbrs => "pbrs",
    /// Bonus for seeds that help each other.
    Synergy => "synergy",
    /// Credit for seeds that helped a committed one to grow.
    Hindsight => "hindsight",
    /// Bonus or fine of a commit.
    CommitShaping => "commit_shaping",
    /// Bonus of a commit that contributes.
    CompletionBonus => "completion_bonus",
    /// Bonus or fine of a prune.
    PruneShaping => "prune_shaping",
    /// Rent on parameters, by the logarithm of growth.
    ComputeRent => "compute_rent",
    /// Rent on parameters, in proportion to a budget or to the host.
    LinearRent => "linear_rent",
    /// Rent on slots beyond the free ones.
    OccupancyRent => "occupancy_rent",
    /// Rent on committed seeds.
    CommittedRent => "committed_rent",
    /// Price of acting at all.
    Intervention => "intervention",
    /// Penalty on contributions far beyond what all seeds add together.
    RatioPenalty => "ratio_penalty",
    /// Penalty on fast moves of alpha.
    AlphaShock => "alpha_shock",
    /// Penalty on blending a harmful seed.
    BlendingWarning => "blending_warning",
    /// Penalty on holding a good seed for ever.
    HoldingWarning => "holding_warning",
    /// Penalty on seeds that the engine removed.
    AutoPrune => "auto_prune",
    /// Penalty on a rollback.
    Governor => "governor",
    /// Terms that an application adds: see [`RewardTerms`](super::RewardTerms).
    Extension => "extension",
}

/// The raw reward of one env and step: the sum of its terms, by definition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewardBreakdown {
    #[serde(with = "terms")]
    terms: [f64; Term::ALL.len()],
    /// Joint improvement of all growing seeds, percentage points; not a part of the sum.
    pub delta_cf: Option<f64>,
    /// Contribution of the acted slot's seed, percentage points; not a part of the sum.
    pub contribution: Option<f64>,
}

/// An array that is longer than serde knows arrays, as a list.
mod terms {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Term;

    type Terms = [f64; Term::ALL.len()];

    pub fn serialize<S: Serializer>(terms: &Terms, serializer: S) -> Result<S::Ok, S::Error> {
        terms.as_slice().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Terms, D::Error> {
        let terms = Vec::deserialize(deserializer)?;
        Terms::try_from(terms)
            .map_err(|terms| D::Error::custom(format!("{} terms, expected {}", terms.len(), Term::ALL.len())))
    }
}

impl Default for RewardBreakdown {
    fn default() -> Self {
        Self {
            terms: [0.0; Term::ALL.len()],
            delta_cf: None,
            contribution: None,
        }
    }
}

impl RewardBreakdown {
    /// Adds `amount` to a term.
    pub fn pay(&mut self, term: Term, amount: f64) {
        self.terms[term as usize] += amount;
    }

    /// The amount paid or charged for `term`.
    pub fn get(&self, term: Term) -> f64 {
        self.terms[term as usize]
    }

    /// The reward.
    pub fn total(&self) -> f64 {
        self.terms.iter().sum()
    }

    /// The terms that are not zero, in the order of the sum.
    pub fn iter(&self) -> impl Iterator<Item = (Term, f64)> {
        let terms = Term::ALL.iter().map(|&term| (term, self.get(term)));
        terms.filter(|(_, amount)| *amount != 0.0)
    }
}

#[cfg(test)]
mod tests;
