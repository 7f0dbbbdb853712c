//! The record of a run on disk: directory, manifest, status, events and log.

mod claim;
mod files;
mod log;
mod status;
mod directory;
mod continuation;
mod find;
mod manifest;
pub(crate) mod memory;
pub(crate) mod announce;
mod listing;
pub(crate) mod systems;
pub(crate) mod trajectories;

pub use announce::Recording;
pub use claim::RunClaim;
pub use continuation::Continuation;
pub use directory::{MANIFEST_FILE, RESOLVED_FILE, SOURCE_FILE};
pub use directory::{RunDirectory, RunDirectoryError, ScenarioFile, runs_root, scenario_folder};
pub(crate) use files::{bytes_below, point_at};
pub use find::{FindRunError, find_run};
pub use listing::{ListedState, RunEntry, list_runs};
pub use log::LogFile;
pub use manifest::{Build, Libraries, Machine, Manifest};
pub use status::STATUS_FILE;
pub use status::{RunStatus, StatusSink, is_legal_transition};
pub use systems::{RecordPlugin, RoundHistory};
pub use trajectories::{Recorder, TrajectoryPlugin};
