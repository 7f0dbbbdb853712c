//! Outcomes of commands, and their exit codes.

use crate::checkpoint::RunDirectoryLost;
use crate::engine::RunReport;
use crate::learner::PolicyDiverged;
use crate::run::StopRequest;
use crate::telemetry::RecordFails;

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The command found something to report: an audited reward pays for something else than growth, two runs differ, a run or
    /// sweep is damaged, but can be resumed.
    Found,
    /// It cannot be resumed, but the rest of it can be used.
    OnlyUsable,
    /// It is unusable.
    Useless,
    /// Wrong usage, a scenario with problems, or a start-up that failed before anything was written.
    Rejected,
    /// Data, I/O or memory failed while running, or once a run directory had been made or changed.
    Failed,
    /// The engine stopped training: the policy diverged.
    Halted,
    /// Training is sound, but a durable record could not be written.
    RecordIncomplete,
    /// Asked to stop; the run can be resumed.
    Stopped(StopRequest),
}

impl Outcome {
    /// The end of a run's command.
    pub fn of_run(report: &RunReport) -> Self {
        match (&report.failure, report.stopped_by) {
            (Some(_), _) if report.record.is_none() => Self::Rejected,
            (Some(error), _) if error.failure.cause::<PolicyDiverged>().is_some() => Self::Halted,
            (Some(error), _) if error.failure.cause::<RunDirectoryLost>().is_some() => Self::RecordIncomplete,
            (Some(error), _) if error.failure.cause::<RecordFails>().is_some() => Self::RecordIncomplete,
            (Some(_), _) => Self::Failed,
            (None, _) if !report.gaps.is_empty() => Self::RecordIncomplete,
            (None, Some(request)) => Self::Stopped(request),
            (None, None) => Self::Done,
        }
    }

    /// The first of two that is not [`Self::Done`].
    pub fn unless_done(self, other: Self) -> Self {
        if self == Self::Done { other } else { self }
    }

    /// Exit code of the process.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Found => 1,
            Self::Rejected => 2,
            Self::Failed => 3,
            Self::Halted => 4,
            Self::RecordIncomplete => 5,
            Self::OnlyUsable => 6,
            Self::Useless => 7,
            Self::Stopped(request) => request.exit_code(),
        }
    }
}

#[cfg(test)]
mod tests;
