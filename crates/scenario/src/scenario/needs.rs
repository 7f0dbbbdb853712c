//! What a reward must know of the counterfactual pass: how often, and of which configurations. The check of a scenario holds
//! section `attribution` to it, and the pass drops nothing of it.

/// How often a reward must know what the seeds contribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeasurementNeed {
    /// The mode does not say.
    #[default]
    Unknown,
    /// The network with the committed seeds alone, at the last step.
    AtTheEnd,
    /// The same at every step.
    EveryStep,
    /// Contributions of at most `max_staleness` steps of age, of a held seed when it is committed.
    AtCommit {
        /// In steps.
        max_staleness: u32,
    },
    /// Contributions of at most `max_staleness` steps of age, always.
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
    /// Most configurations that `players` seeds can require, the one with all on included.
    pub fn most(self, players: usize) -> usize {
        let each_off = if self.each_off { players + 1 } else { 0 };
        // The committed alone, and with each held one: most where all are held.
        let committed = if self.committed { players + 1 } else { 0 };
        // Without committed players, "the committed alone" is "none": one mask serves both.
        let is_shared = usize::from(self.each_off && self.committed);
        let subsets = u32::try_from(players)
            .ok()
            .and_then(|players| 1_usize.checked_shl(players));
        (1 + each_off + committed - is_shared).min(subsets.unwrap_or(usize::MAX))
    }
}

/// What is to be known of a reward beside how it pays: each mode says it of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardProfile {
    /// How often it must know what the seeds contribute.
    pub measurement: MeasurementNeed,
    /// Whether committed seeds must stay players of the counterfactual pass.
    pub measures_committed: bool,
    /// What it charges for as many parameters as the host has, in percentage points of an episode; `None` where its rent is no
    /// multiple of the size.
    pub price: Option<f64>,
}

impl RewardProfile {
    /// Of a mode of which no more is to be said.
    pub const fn needing(measurement: MeasurementNeed) -> Self {
        Self {
            measurement,
            measures_committed: false,
            price: None,
        }
    }

    /// What must not be dropped of a measurement; `is_final`: it is that of the last step.
    pub fn required_masks(&self, is_final: bool) -> RequiredMasks {
        let is_at_the_end = self.measurement == MeasurementNeed::AtTheEnd;
        RequiredMasks {
            each_off: !is_at_the_end,
            committed: !is_at_the_end || is_final,
        }
    }
}

#[cfg(test)]
mod tests;
