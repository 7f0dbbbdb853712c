//! Trajectories: what a controller saw, could have done and did, and what followed, as data to learn from without playing.
//!
//! `segment` is an unbroken stretch of an episode and its form in a shard, `set` the folder `NAME.traj` with its manifest,
//! `collect` fills segments while envs play. `docs/reference/trajectories.md` is the format.

mod segment;
mod set;
pub(crate) mod collect;

pub use collect::{CollectorPlugin, EnvTrajectory};
pub use segment::{CHARGED, FORCED, Segment, SegmentFinish, Sizes};
pub use set::{FOLDER, MANIFEST_FILE, Manifest, Misfit, Shard, TrajectoryError, TrajectorySet};
