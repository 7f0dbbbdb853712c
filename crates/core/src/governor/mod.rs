//! The governor: a watchdog per env that restores the last known good state when growth has wrecked it.
//!
//! It looks at one number a step, the validation loss of the whole network, right after the step's sync and before
//! anything is observed. A healthy env may be captured. A suspect one may neither plant nor commit. A panicking one is
//! rolled back at once, alone, and takes no further part in the step. Everything it decides by is plain data
//! (`detector`, `snapshot_rule`, `preflight`); tensors are moved by `store` and `rollback`.

mod detector;
mod preflight;
mod snapshot_rule;
mod state;
mod store;
pub(crate) mod systems;
pub(crate) mod rollback;

use bevy_app::{App, Plugin};

pub use detector::{Alarm, LossVerdict};
pub use snapshot_rule::{SnapshotInput, SnapshotRule};
pub use state::{Governor, GovernorError, Rollback, RollbackVerdict};

use store::Snapshots;

use crate::env::{EnvId, KeepInRounds};
use crate::schedule::{Act, AddWork, Assess, RoundStart, StepSync, Work};

/// Watches all envs. Without it nothing is captured, vetoed or rolled back.
pub struct GovernorPlugin;

impl Plugin for GovernorPlugin {
    fn build(&self, app: &mut App) {
        app.register_required_components::<EnvId, Snapshots>();
        app.register_required_components::<EnvId, RollbackVerdict>();
        app.add_work(RoundStart, Work::SnapshotInitial, systems::snapshot_initial)
            .add_work(StepSync, Work::CarrySnapshotCounts, systems::carry_snapshot_counts)
            .add_work(Assess, Work::GovernorCheck, systems::governor_check)
            .add_work(Assess, Work::GovernorRollback, rollback::governor_rollback)
            .add_work(Assess, Work::GovernorSnapshot, systems::governor_snapshot)
            .add_work(Assess, Work::ReportRollbacks, rollback::report_rollbacks)
            .add_work(Act, Work::CommitSnapshot, systems::commit_snapshot)
            .keep_in_rounds_by(systems::save_snapshots, systems::restore_snapshots)
            .keep_in_rounds::<Governor>("governor");
    }
}
