//! Section `governor`: whether wrecked envs are restored, and how often.

use crate::schema::section;

section! {
    /// Section `governor`: whether wrecked envs are restored, and how often.
    #[derive(Copy)]
    pub struct GovernorConfig {
        /// Capture, veto and roll back; if not, alarms are reported and nothing else.
        enabled: bool = true;
        /// The rollback that ends an env's episode; 0 and 1: the first.
        max_rollbacks_per_episode: u32 = 3;
    }
}
