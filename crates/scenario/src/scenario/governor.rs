//! Section `governor`: the watchdog that restores envs whose training has gone wrong.

use crate::schema::section;

section! {
    /// Section `governor`: the watchdog that restores envs whose training has gone wrong.
    #[derive(Copy)]
    pub struct GovernorConfig {
        /// Captures states, vetoes operations and rolls envs back. If false, the governor only reports alarms.
        enabled: bool = true;
        /// Number of rollbacks after which an env's episode ends. 0 has the same effect as 1.
        max_rollbacks_per_episode: u32 = 3;
    }
}
