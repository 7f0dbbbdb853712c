//! What a program that extends the engine usually names.

pub use crate::SimicPlugins;
pub use crate::clock::RunClock;
pub use crate::env::{EnvId, EpisodeStats, Experiment, SeedSlots, StepStatus, TrainMetrics, ValMetrics};
pub use crate::governor::{Governor, RollbackVerdict};
pub use crate::run::drive;
pub use crate::schedule::*;
