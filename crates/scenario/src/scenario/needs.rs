//! What a reward must know of the counterfactual pass: how often, and of which configurations. The check of a scenario holds
//! section `attribution` to it, and the pass drops nothing of it.

use super::reward::{ContributionMode, RewardConfig};

/// How often a reward must know what the seeds contribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasurementNeed {
    /// What a mode of an application needs is not known here.
    Unknown,
    /// The network with the committed seeds alone, at the last step.
    AtTheEnd,
    /// The same at every step.
    EveryStep,
    /// Contributions at most so many steps old, of a held seed when it is committed.
    AtCommit {
        /// In steps.
        max_staleness: u32,
    },
    /// Contributions at most so many steps old, always.
    Fresh {
        /// In steps.
        max_staleness: u32,
    },
}

/// Which configurations of a measurement a reward cannot do without; that with all seeds on is always measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredMasks {
    /// Each player off, and all of them.
    pub each_off: bool,
    /// The committed players alone, and with each held one.
    pub committed: bool,
}

impl RequiredMasks {
    /// Most configurations that are required of so many players, that with all on among them.
    pub fn most(self, players: usize) -> usize {
        let each_off = if self.each_off { players + 1 } else { 0 };
        // The committed alone, and with each held one: most where all are held.
        let committed = if self.committed { players + 1 } else { 0 };
        // Without committed players they alone are nobody: one mask serves both.
        let is_shared = usize::from(self.each_off && self.committed);
        let subsets = u32::try_from(players)
            .ok()
            .and_then(|players| 1_usize.checked_shl(players));
        (1 + each_off + committed - is_shared).min(subsets.unwrap_or(usize::MAX))
    }
}

impl RewardConfig {
    /// How often the mode must know what the seeds contribute.
    pub fn measurement_need(&self) -> MeasurementNeed {
        let fresh = |max_staleness| MeasurementNeed::Fresh { max_staleness };
        let at_commit = |max_staleness| MeasurementNeed::AtCommit { max_staleness };
        match self {
            Self::Custom { .. } => MeasurementNeed::Unknown,
            Self::Loss(_) => MeasurementNeed::AtTheEnd,
            Self::Contribution(mode) => match mode {
                ContributionMode::Sparse(_) | ContributionMode::Minimal(_) => MeasurementNeed::AtTheEnd,
                ContributionMode::Committed(_) => MeasurementNeed::EveryStep,
                ContributionMode::Shaped(config) => fresh(config.max_staleness),
                ContributionMode::Escrow(config) => fresh(config.shaped.max_staleness),
                ContributionMode::Simplified(config) => at_commit(config.max_staleness),
                ContributionMode::Basic(config) => at_commit(config.max_staleness),
                ContributionMode::BasicPlus(config) => fresh(config.basic.max_staleness),
            },
        }
    }

    /// What must not be dropped of a measurement; `is_final`: it is that of the last step.
    pub fn required_masks(&self, is_final: bool) -> RequiredMasks {
        let is_at_the_end = self.measurement_need() == MeasurementNeed::AtTheEnd;
        RequiredMasks {
            each_off: !is_at_the_end,
            committed: !is_at_the_end || is_final,
        }
    }
}

#[cfg(test)]
mod tests;
