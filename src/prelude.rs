//! What a program that extends the engine usually names, bevy's own vocabulary among it.

pub use bevy_app::{App, Plugin};
pub use bevy_ecs::prelude::*;

pub use crate::clock::RunClock;
pub use crate::controller::{
    Controller, ControllerRegistry, Decision, DecisionView, MaskSet, NetRegistry, PolicyError,
};
pub use crate::data::{CustomImages, DataRegistry, DataRequest};
pub use crate::engine::{Engine, SimicPlugins};
pub use crate::env::{EnvId, EpisodeStats, Experiment, KeepInRounds, SeedSlots, StepStatus, TrainMetrics, ValMetrics};
pub use crate::governor::{Governor, RollbackVerdict};
pub use crate::growth::{LifecycleCommand, LifecycleOp, SeedStage};
pub use crate::host::{HostPlan, HostRegistry};
pub use crate::reward::{EpisodeReward, StepReward};
pub use crate::run::{Extension, ExtensionError, StopSignal};
pub use crate::schedule::*;
pub use crate::seed::{Blueprint, BlueprintRegistry, SeedModule};
pub use crate::unfinished::UnfinishedRound;
