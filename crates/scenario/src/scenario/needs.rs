//! The times at which a reward must know what the counterfactual pass measures. The check of a scenario holds section
//! `attribution` to them.

/// Times at which a reward must know the contributions of the seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeasurementNeed {
    /// The mode doesn't say.
    #[default]
    Unknown,
    /// The network with only the committed seeds, at the last step.
    AtTheEnd,
    /// The same at every step.
    EveryStep,
    /// Contributions of the same step, of a held seed when it is committed.
    AtCommit,
    /// Contributions of the same step, always.
    Fresh,
}

/// Needs and price of a reward, as its mode declares them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardProfile {
    /// Times at which it must know the contributions of the seeds.
    pub measurement: MeasurementNeed,
    /// True if committed seeds must stay players of the counterfactual pass.
    pub measures_committed: bool,
    /// Its charge for as many parameters as the host has, in percentage points of an episode; `None` if its rent isn't a
    /// multiple of the size.
    pub price: Option<f64>,
}

impl RewardProfile {
    /// The profile of a mode without further needs.
    pub const fn needing(measurement: MeasurementNeed) -> Self {
        Self {
            measurement,
            measures_committed: false,
            price: None,
        }
    }
}
