//! Names for an extension besides those of the [`prelude`](crate::prelude), by the part that it extends.

// Commands and masks.
pub use crate::actions::{Choices, DecisionPoint, HEADS, Head, HeadIndices, MaskRow, OPS, RELEVANCE};
pub use crate::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, SlotId, Tempo, Topology};

// Controllers and what they see.
pub use crate::controller::{
    ExternalCommands, Extract, Masks, ObservationFeature, ObservationFeatures, Treatment, WaitController,
};

// Data sets.
pub use crate::data::Part;

// Hosts.
pub use crate::host::{Conv, Features, HostDesign, HostError, Layer, LayerDesign, ResidualBlock};
pub use crate::scenario::{HostChoice, HostName};

// Networks, and the tensors of all parts.
pub use crate::nn::{Implementation, Optimizer, Param, Stack};
pub use crate::policy::{
    ActorCritic, DecideMode, Evaluation, LogitLayout, NetContext, NetOutput, NetSequence, NetSpec, ParamGroup,
    PolicyInput, PolicyParam, PolicyParams, RawObservations, SequenceInput, TrainablePolicy,
};
pub use crate::torch::{HostSyncCounter, NoGrad, TorchError, keep_freed_blocks, read_f32, set_intra_op_threads};

// The learner without the engine.
pub use crate::learner::{
    BufferShape, DecidedStep, Horizon, LastUpdate, Learner, RolloutBuffer, SegmentEnd, StepOutcome, StepTensors,
    ValueUnits,
};
pub use crate::scenario::{EpisodeEnd, LearnerConfig, LifecycleConfig, MaskConfig};
pub use crate::seed::{Limits, SeedReport};
pub use crate::telemetry::LearnerUpdate;

// Rewards.
pub use crate::scenario::RewardConfig;

// Events and their sinks.
pub use crate::telemetry::{Event, Payload, Sink, SinkError, Sinks, strip_volatile};

// What looks for anomalies in events.
pub use crate::telemetry::{
    Comparison, Detector, Detectors, ReadEvent, Reading, ReadingPlace, Recent, RecentRound, Severity,
};

// Networks that are taken home.
pub use crate::graph::{Graph, LayerGraph, ModuleGraph, NamedLayer, SeedGraph, StackLayer};
pub use crate::keep::{KeptNetworks, NetworkShelf};
pub use crate::network::{DataCard, GrownNetwork, Measured, Measures, NetworkError, Origin, SeedHistory, SeedMeasures};

// An engine and how it ends.
pub use crate::engine::{EngineBuilder, RunRecord, RunReport, SetupError};
pub use crate::health::EngineError;
pub use crate::run::StopRequest;

// What a run was made of, for its record.
pub use crate::record::Build;

// Plugins of the engine, to be left out or replaced.
pub use crate::checkpoint::CheckpointPlugin;
pub use crate::controller::ControllerPlugin;
pub use crate::env::EnvPlugin;
pub use crate::faults::FaultPlugin;
pub use crate::governor::GovernorPlugin;
pub use crate::keep::KeepPlugin;
pub use crate::learner::LearnerPlugin;
pub use crate::record::RecordPlugin;
pub use crate::reward::RewardPlugin;
pub use crate::run::StartupPlugin;
pub use crate::telemetry::TelemetryPlugin;
pub use crate::training::TrainingPlugin;
pub use crate::validation::ValidationPlugin;
