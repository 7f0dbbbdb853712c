//! How often a reward must know what the counterfactual pass measures. The check of a scenario holds section `attribution` to
//! it.

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
    /// Contributions of the same step, of a held seed when it is committed.
    AtCommit,
    /// Contributions of the same step, always.
    Fresh,
}

/// Needs and price of a reward, as its mode declares them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardProfile {
    /// How often it must know what the seeds contribute.
    pub measurement: MeasurementNeed,
    /// Whether committed seeds must stay players of the counterfactual pass.
    pub measures_committed: bool,
    /// Its charge for as many parameters as the host has, in percentage points of an episode; `None` where its rent is no
    /// multiple of the size.
    pub price: Option<f64>,
}

impl RewardProfile {
    /// Of a mode without further needs.
    pub const fn needing(measurement: MeasurementNeed) -> Self {
        Self {
            measurement,
            measures_committed: false,
            price: None,
        }
    }
}
