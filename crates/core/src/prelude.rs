//! Names that a program that extends the engine usually needs, those of bevy and tch among them: in the versions that the
//! engine is built with.

pub use std::sync::Arc;

pub use bevy_app::{App, Plugin};
pub use bevy_ecs::prelude::*;
pub use tch::{self, TchError, Tensor};

pub use crate::actions::{Decision, MaskSet, PolicyError, command_of};
pub use crate::clock::RunClock;
pub use crate::controller::{BuildContext, Controller, ControllerRegistry, DecisionView};
pub use crate::data::{CustomImages, DataRegistry, DataRequest};
pub use crate::engine::{Engine, Extension, SimicPlugins};
pub use crate::env::{
    EnvId, EpisodeStats, Experiment, HostModel, KeepInRounds, SeedSlots, StepStatus, TrainMetrics, ValMetrics,
};
pub use crate::governor::{Governor, RollbackVerdict};
pub use crate::growth::{LifecycleCommand, LifecycleOp, SeedStage};
pub use crate::host::HostPlan;
pub use crate::network::HostRegistry;
pub use crate::nn::{Init, LayerNorm, Linear, Mode, ParamSet};
pub use crate::policy::{CoreOutput, NetCore, NetRegistry, Packing, RecurrentCell, RecurrentCore, RecurrentState};
pub use crate::random::{Domain, Draw, RunRng};
pub use crate::reward::{
    EpisodeReward, RewardBreakdown, RewardError, RewardInputs, RewardMode, RewardModes, RewardState, RewardTerms,
    SeedView, StepReward, Term,
};
pub use crate::run::{Inventory, StopSignal};
pub use crate::scenario::{MeasurementNeed, RewardProfile, SparseReward};
pub use crate::schedule::*;
pub use crate::seed::{Blueprint, BlueprintError, BlueprintRegistry, SeedModule};
pub use crate::telemetry::Metrics;
pub use crate::torch::Backend;
pub use crate::training::{BatchPoint, HookedBatch, OnBatch};
pub use crate::unfinished::UnfinishedRound;
pub use crate::validation::TestResult;
pub use crate::{choice, section};
