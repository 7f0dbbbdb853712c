//! Sweeps: many trainings of one scenario, planned from a file, played by any number of workers that share nothing but a
//! folder, and collected into tables.
//!
//! ```text
//! sweep.ron ──file──► axes ──space──► points ──plan──► trials ──folder──► SWEEP/plan.json
//! launch: Slurm | Ray | HyperQueue ──► workers
//! worker: state (leases, results) ──► a free trial ──lease──► child process: run | resume ──► outcome ──► collect
//! ```

mod file;
mod process;
mod space;
mod plan;
mod folder;
mod launch;
mod place;
mod lease;
mod outcome;
mod collect;
mod state;
mod child;
mod player;
mod worker;
#[cfg(test)]
mod fixtures;

pub use child::Attempt;
pub use collect::{Collected, CollectedTrial};
pub use file::{
    Axis, AxisValues, Budget, Drawing, Evaluation, EvaluationMode, Judge, NamedPoint, Setting, SuccessiveHalving,
    SweepFile,
};
pub(crate) use folder::replace_shared;
pub use folder::{SweepError, SweepFolder};
pub use launch::{Cluster, Launch};
pub use lease::{Holder, Lease, LeaseContent, Leases};
pub use outcome::{
    Results, TrialEnd, TrialResult, read_result, read_sound, try_again, try_misplaced_again, write_rung,
};
pub use place::{Place, Shelf};
pub use plan::{Plan, PlanError, Planned, QUICKSTART, Trial, plan};
pub use player::{Player, WorkError};
pub use process::Worker;
pub use state::{SweepState, TrialSegment, TrialState};
pub use worker::{Shard, WorkOptions, WorkerEvent, work};
