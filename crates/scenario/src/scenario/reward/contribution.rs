//! The contribution family.

use crate::schema::section;

section! {
    /// Dense: the change of the accuracy with committed seeds alone, less rent. What is paid over an episode is what it
    /// gained and what that cost.
    #[derive(Copy)]
    pub struct CommittedReward {
        /// Reward per percentage point.
        weight: f64 = 0.1, POSITIVE;
        /// Cost of seeds with as many parameters as the host, if they bear on it throughout the episode.
        #[unit = "percentage points"]
        rent: f64 = 1.0, NOT_NEGATIVE;
    }
}

section! {
    /// At the end of an episode alone: committed accuracy less the committed parameters' cost.
    #[derive(Copy)]
    pub struct SparseReward {
        /// Factor on the reward of the episode.
        sparse_reward_scale: f64 = 1.0, POSITIVE;
    }
}
