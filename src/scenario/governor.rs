//! Section `governor`: when an env counts as wrecked, what is kept to restore it, what the controller pays.

use crate::schema::{choice, section};

section! {
    /// Section `governor`: when an env counts as wrecked, and what happens then.
    #[derive(Copy)]
    pub struct GovernorConfig {
        /// Capture, veto and roll back; if not, alarms are reported and nothing else.
        enabled: bool = true;
        /// A loss this many standard deviations above the healthy mean is suspicious.
        sensitivity: f64 = 6.0, POSITIVE;
        /// A loss above this multiple of the healthy mean is suspicious.
        multiplier: f64 = 3.0, ABOVE_ONE;
        /// A loss up to this is never suspicious; guessing among 10 classes costs 2.3.
        #[unit = "nats"]
        absolute_limit: f64 = 12.0, POSITIVE;
        /// Healthy losses remembered; at least min_history.
        history_window: usize = 20, integer(2, 10_000);
        /// Healthy losses needed before their mean is trusted.
        min_history: usize = 10, integer(2, 10_000);
        /// Suspicious steps in a row after which the env is rolled back.
        min_panics: u32 = 3, at_least(1);
        /// When a network that was better than chance counts as collapsed to it.
        collapse: CollapseConfig;
        /// Raw reward that a rollback costs.
        death_penalty: f64 = 10.0, NOT_NEGATIVE;
        /// Which rollbacks are charged to the controller, and which seeds they prune.
        blame: Blame = Blame::Contributing;
        /// What a rollback that is charged does to the rewards of the segment it ends.
        rollback_credit: RollbackCredit = RollbackCredit::PenalizeLost;
        /// What happens instead of a rollback that could only repeat the last one.
        repeated_rollback: RepeatedRollback = RepeatedRollback::Accept;
        /// When the state to restore is captured.
        snapshot: SnapshotPolicy;
        /// Where captured states lie; on a CPU there is but one place.
        placement: SnapshotPlacement = SnapshotPlacement::Auto;
        /// The rollback that ends an env's episode; 0 and 1: the first.
        max_rollbacks_per_episode: u32 = 3;
    }
}

section! {
    /// When a network that was better than chance counts as collapsed to it.
    #[derive(Copy)]
    pub struct CollapseConfig {
        /// The healthy mean must lie below this share of the loss of guessing; less than 1 - band.
        arm: f64 = 0.6, OPEN_FRACTION;
        /// The loss now differs from the loss of guessing by less than this share of it.
        band: f64 = 0.065, OPEN_FRACTION;
    }
}

choice! {
    /// Which rollbacks are charged to the controller, and which seeds they prune.
    #[derive(Copy, Eq)]
    pub enum Blame {
        /// those of networks in which a seed took part since the restored state; seeds that took part are pruned
        Contributing,
        /// all of them; every live seed is pruned
        Everyone,
    }
}

choice! {
    /// What happens where a rollback would restore the same state as the one before it, and no seed took part since.
    #[derive(Copy, Eq)]
    pub enum RepeatedRollback {
        /// a finite loss is taken for how the host is; else the state is restored and the episode ends
        Accept,
        /// the state is restored again
        Restore,
    }
}

choice! {
    /// What a rollback that is charged does to the rewards of the segment that it ends.
    #[derive(Copy, Eq)]
    pub enum RollbackCredit {
        /// the last reward becomes the penalty, those of steps after the restored state 0, earlier ones stay
        PenalizeLost,
        /// the last reward becomes the penalty, earlier ones of the segment 0
        PenalizeForfeit,
        /// only the last reward is replaced
        PenalizeKeep,
        /// the segment is left out of learning
        Invalidate,
    }
}

choice! {
    /// When the state to restore is captured.
    #[derive(Copy)]
    pub enum SnapshotPolicy {
        /// after improvements, at least every few steps, trusted after a probation
        Adaptive {
            /// Fewest steps between captures.
            min_interval: u32, at_least(1);
            /// Steps after which a capture is due without an improvement.
            max_interval: u32, at_least(1);
            /// Relative improvement of the loss that makes a capture due early.
            improvement: f64, BELOW_ONE;
            /// Factor by which the loss may exceed the least of the last five.
            stable_ratio: f64, AT_LEAST_ONE;
            /// Steps after which a capture need not be stable.
            patience: u32, at_least(1);
            /// Healthy steps until a capture is trusted.
            probation: u32;
        },
        /// every so many steps, trusted at once
        Every(u32, at_least(1)),
    }
}

impl Default for SnapshotPolicy {
    fn default() -> Self {
        Self::Adaptive {
            min_interval: 2,
            max_interval: 5,
            improvement: 0.01,
            stable_ratio: 1.1,
            patience: 15,
            probation: 2,
        }
    }
}

choice! {
    /// Where captured states lie; on a CPU there is but one place.
    #[derive(Copy, Eq)]
    pub enum SnapshotPlacement {
        /// on the device up to 16 MiB, else pinned_host
        Auto,
        /// on the env's device
        Device,
        /// in host memory
        PinnedHost,
    }
}
