//! The map of the engine: every schedule, every public system set and every piece of work, in order.
//!
//! The driver (`run::driver`) runs the schedules below; all behaviour is in systems that plugins put into them. Systems
//! of a schedule run one after another in the order of its table; a system works on all envs at once, in parallel.
//!
//! ```text
//! Startup
//! for each round:  RoundStart
//!   for each step: StepStart → TrainBatch × M → ValBatch × V → StepSync → Assess → Decide → Act → StepEnd
//!                  RoundEnd
//! Shutdown
//! ```
//!
//! To add a system, put it into a public set and order it against the [`Work`] it depends on:
//!
//! ```
//! # use bevy_app::App;
//! # use bevy_ecs::prelude::*;
//! use simic_engine::prelude::*;
//!
//! fn watch(envs: Query<(&EnvId, &ValMetrics)>) {
//!     for (env, metrics) in &envs {
//!         println!("env {}: {:.1} %", env.index, metrics.accuracy_percent);
//!     }
//! }
//!
//! # let mut app = App::new();
//! # app.add_plugins(SchedulePlugin);
//! app.add_systems(Assess, watch.in_set(EngineSet::Observe).after(Work::UpdateSignals).before(Work::ReportSlots));
//! ```

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{InternedScheduleLabel, LogLevel, ScheduleBuildSettings, ScheduleLabel};

use crate::clock::RunClock;
use crate::health::{Failure, RunHealth, running};

/// Once: backend, data, controllers, envs.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Startup;
/// Every env starts an episode with a fresh host.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoundStart;
/// One host epoch begins: data order, accumulators.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct StepStart;
/// One training batch of every env.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrainBatch;
/// One validation batch of every env, all coalitions of its seeds at once.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValBatch;
/// The step's only wait on devices.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct StepSync;
/// What the step's numbers mean.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Assess;
/// One decision per env.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decide;
/// The decision takes effect; slots tick.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Act;
/// Episode ends, telemetry.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct StepEnd;
/// Outcomes of the episodes.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoundEnd;
/// Always runs, also after an error or a stop.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shutdown;

/// All schedules, in the order in which they first run.
pub fn all_schedules() -> [InternedScheduleLabel; 12] {
    [
        Startup.intern(),
        RoundStart.intern(),
        StepStart.intern(),
        TrainBatch.intern(),
        ValBatch.intern(),
        StepSync.intern(),
        Assess.intern(),
        Decide.intern(),
        Act.intern(),
        StepEnd.intern(),
        RoundEnd.intern(),
        Shutdown.intern(),
    ]
}

/// The public sets: the vocabulary of extensions.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineSet {
    /// `Startup` and `Shutdown`: what has to be there before the first round and be told after the last.
    Prepare,
    /// `RoundStart`: hosts, slots and trackers of a new episode.
    Reset,
    /// Batches reach their env's device.
    FetchBatch,
    /// Forward, backward, clip, guard, update.
    TrainStep,
    /// The fused validation and counterfactual pass.
    Validate,
    /// The packed read and the wait for it.
    SyncStreams,
    /// The watchdog: metrics, alarms, rollbacks, captures.
    Govern,
    /// What the controller will see: contributions, seed records, signals, reports, masks.
    Observe,
    /// The controller's choice.
    Decide,
    /// The choice is executed.
    Act,
    /// The mechanical tick of every slot.
    Lifecycle,
    /// What the step is worth.
    Reward,
    /// The policy learns from its rollout.
    PpoUpdate,
    /// Statistics and telemetry.
    Record,
    /// What lasts from round to round, on disk; then whether there is a next round.
    Checkpoint,
}

/// Every engine system by name, each in its own set, so that others can be ordered against it.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    InitBackend,
    ChoosePrecision,
    OpenDevices,
    LoadDatasets,
    CheckBlueprints,
    ReadInitialTopology,
    BuildController,
    BuildLearner,
    SpawnEnvs,
    EquipTraining,
    EquipValidation,
    Restore,
    Announce,
    WriteCheckpoint,
    BeginRound,
    ResetEnvs,
    ApplyInitialTopology,
    SnapshotInitial,
    BeginEpisodes,
    ResetRewards,
    OpenStep,
    BeginStep,
    FetchTrainBatch,
    ForwardBackward,
    InjectFaults,
    Optimize,
    PlanVal,
    CoalitionForward,
    CarrySnapshotCounts,
    EnqueueReads,
    WaitAll,
    Unpack,
    DeriveMetrics,
    SpikeLosses,
    GovernorCheck,
    GovernorRollback,
    CreditRollbacks,
    CloseAccounts,
    GovernorSnapshot,
    ReportRollbacks,
    Attribute,
    TrackSeeds,
    UpdateSignals,
    ReportSlots,
    BuildObservations,
    BuildMasks,
    NormaliseObservations,
    RememberStates,
    Decide,
    StoreDecisions,
    CaptureRewardInputs,
    ExecuteAction,
    AdvanceLifecycle,
    ComputeReward,
    StoreOutcomes,
    UpdateTracking,
    CommitSnapshot,
    EndEpisodes,
    EndSegments,
    EvaluateTest,
    EmitStep,
    UpdatePolicy,
    FinishEpisodes,
    EndControllerEpisodes,
    RoundStats,
    TeardownRound,
    StopIfDiverged,
    MeasureControl,
    FinishRun,
}

impl Work {
    /// What failed if this work did, in the words of an error message.
    pub const fn phase(self) -> &'static str {
        match self {
            Self::InitBackend
            | Self::ChoosePrecision
            | Self::OpenDevices
            | Self::LoadDatasets
            | Self::CheckBlueprints
            | Self::ReadInitialTopology
            | Self::BuildController
            | Self::BuildLearner
            | Self::SpawnEnvs
            | Self::EquipTraining
            | Self::EquipValidation
            | Self::Announce => "start-up",
            Self::Restore => "resume",
            Self::WriteCheckpoint => "checkpoint",
            Self::BeginRound | Self::ResetEnvs | Self::BeginEpisodes | Self::ResetRewards => "round start",
            Self::ApplyInitialTopology => "initial topology",
            Self::SnapshotInitial
            | Self::CarrySnapshotCounts
            | Self::GovernorCheck
            | Self::GovernorSnapshot
            | Self::CommitSnapshot => "governor",
            Self::OpenStep => "step start",
            Self::BeginStep => "data order",
            Self::FetchTrainBatch => "fetch",
            Self::ForwardBackward => "train",
            Self::InjectFaults | Self::SpikeLosses => "fault injection",
            Self::Optimize => "optimize",
            Self::PlanVal => "validation plan",
            Self::CoalitionForward => "validation",
            Self::EnqueueReads | Self::Unpack => "read",
            Self::WaitAll => "wait",
            Self::DeriveMetrics => "metrics",
            Self::GovernorRollback | Self::CreditRollbacks | Self::ReportRollbacks => "rollback",
            Self::Attribute => "attribution",
            Self::UpdateSignals => "signals",
            Self::TrackSeeds | Self::ReportSlots | Self::UpdateTracking => "tracking",
            Self::BuildObservations
            | Self::BuildMasks
            | Self::NormaliseObservations
            | Self::RememberStates
            | Self::Decide => "decision",
            Self::StoreDecisions | Self::StoreOutcomes | Self::EndSegments => "rollout",
            Self::ExecuteAction => "action",
            Self::AdvanceLifecycle => "lifecycle",
            Self::CloseAccounts | Self::CaptureRewardInputs | Self::ComputeReward => "reward",
            Self::EvaluateTest => "final test",
            Self::UpdatePolicy | Self::StopIfDiverged => "policy update",
            Self::EndEpisodes | Self::FinishEpisodes | Self::EndControllerEpisodes | Self::TeardownRound => {
                "episode end"
            }
            Self::EmitStep | Self::RoundStats | Self::FinishRun => "record",
            Self::MeasureControl => "control",
        }
    }
}

/// Registers systems as pieces of [`Work`].
///
/// A system returns nothing, or a `Result` with an error of its own subject. A failure stops the run: it is noted in
/// [`RunHealth`] with the work's [phase](Work::phase), the clock's position and, if the system named one, the env.
pub trait AddWork {
    /// `schedule` must list `work`.
    fn add_work<M, R: WorkResult>(
        &mut self,
        schedule: impl ScheduleLabel,
        work: Work,
        system: impl IntoSystem<(), R, M>,
    ) -> &mut Self;

    /// Work that is left out while `condition` is false.
    fn add_work_if<M, C, R: WorkResult>(
        &mut self,
        schedule: impl ScheduleLabel,
        work: Work,
        system: impl IntoSystem<(), R, M>,
        condition: impl SystemCondition<C>,
    ) -> &mut Self;
}

impl AddWork for App {
    fn add_work<M, R: WorkResult>(
        &mut self,
        schedule: impl ScheduleLabel,
        work: Work,
        system: impl IntoSystem<(), R, M>,
    ) -> &mut Self {
        self.add_systems(schedule, system.pipe(record_failure_of(work)).in_set(work))
    }

    fn add_work_if<M, C, R: WorkResult>(
        &mut self,
        schedule: impl ScheduleLabel,
        work: Work,
        system: impl IntoSystem<(), R, M>,
        condition: impl SystemCondition<C>,
    ) -> &mut Self {
        let system = system.pipe(record_failure_of(work)).in_set(work);
        self.add_systems(schedule, system.run_if(condition))
    }
}

/// What a system that does [`Work`] may return.
pub trait WorkResult: 'static {
    fn failure(self) -> Option<Failure>;
}

impl WorkResult for () {
    fn failure(self) -> Option<Failure> {
        None
    }
}

impl<E: Into<Failure> + 'static> WorkResult for Result<(), E> {
    fn failure(self) -> Option<Failure> {
        self.err().map(E::into)
    }
}

fn record_failure_of<R: WorkResult>(work: Work) -> impl Fn(In<R>, ResMut<RunHealth>, Option<Res<RunClock>>) {
    move |In(result), mut health, clock| {
        if let Some(failure) = result.failure() {
            let position = clock.map(|clock| clock.position()).unwrap_or_default();
            health.record(failure.during(work.phase(), position));
        }
    }
}

type Table = &'static [(EngineSet, &'static [Work])];

const STARTUP: Table = &[
    (
        EngineSet::Prepare,
        &[
            Work::InitBackend,
            Work::ChoosePrecision,
            Work::OpenDevices,
            Work::LoadDatasets,
            Work::CheckBlueprints,
            Work::ReadInitialTopology,
            Work::BuildController,
            Work::BuildLearner,
            Work::SpawnEnvs,
            Work::EquipTraining,
            Work::EquipValidation,
            Work::Restore,
            Work::Announce,
        ],
    ),
    (EngineSet::Checkpoint, &[Work::WriteCheckpoint]),
];
const ROUND_START: Table = &[(
    EngineSet::Reset,
    &[
        Work::BeginRound,
        Work::ResetEnvs,
        Work::ApplyInitialTopology,
        Work::SnapshotInitial,
        Work::BeginEpisodes,
        Work::ResetRewards,
    ],
)];
const STEP_START: Table = &[(EngineSet::Reset, &[Work::OpenStep, Work::BeginStep])];
const TRAIN_BATCH: Table = &[
    (EngineSet::FetchBatch, &[Work::FetchTrainBatch]),
    (
        EngineSet::TrainStep,
        &[Work::ForwardBackward, Work::InjectFaults, Work::Optimize],
    ),
];
const VAL_BATCH: Table = &[(EngineSet::Validate, &[Work::PlanVal, Work::CoalitionForward])];
const STEP_SYNC: Table = &[(
    EngineSet::SyncStreams,
    &[
        Work::CarrySnapshotCounts,
        Work::EnqueueReads,
        Work::WaitAll,
        Work::Unpack,
    ],
)];
const ASSESS: Table = &[
    (
        EngineSet::Govern,
        &[
            Work::DeriveMetrics,
            Work::SpikeLosses,
            Work::GovernorCheck,
            Work::GovernorRollback,
            Work::CreditRollbacks,
            Work::CloseAccounts,
            Work::GovernorSnapshot,
            Work::ReportRollbacks,
        ],
    ),
    (
        EngineSet::Observe,
        &[
            Work::Attribute,
            Work::TrackSeeds,
            Work::UpdateSignals,
            Work::ReportSlots,
        ],
    ),
];
const DECIDE: Table = &[
    (
        EngineSet::Observe,
        &[Work::BuildObservations, Work::BuildMasks, Work::NormaliseObservations],
    ),
    (
        EngineSet::Decide,
        &[Work::RememberStates, Work::Decide, Work::StoreDecisions],
    ),
];
const ACT: Table = &[
    (EngineSet::Act, &[Work::CaptureRewardInputs, Work::ExecuteAction]),
    (EngineSet::Lifecycle, &[Work::AdvanceLifecycle]),
    (EngineSet::Reward, &[Work::ComputeReward]),
    (EngineSet::Record, &[Work::StoreOutcomes, Work::UpdateTracking]),
    (EngineSet::Govern, &[Work::CommitSnapshot]),
];
const STEP_END: Table = &[(
    EngineSet::Record,
    &[Work::EndEpisodes, Work::EndSegments, Work::EvaluateTest, Work::EmitStep],
)];
const ROUND_END: Table = &[
    (EngineSet::PpoUpdate, &[Work::UpdatePolicy]),
    (
        EngineSet::Record,
        &[
            Work::FinishEpisodes,
            Work::EndControllerEpisodes,
            Work::RoundStats,
            Work::TeardownRound,
        ],
    ),
    (EngineSet::Checkpoint, &[Work::WriteCheckpoint, Work::StopIfDiverged]),
];
const SHUTDOWN: Table = &[
    (EngineSet::Checkpoint, &[Work::WriteCheckpoint]),
    (EngineSet::Prepare, &[Work::MeasureControl, Work::FinishRun]),
];

/// Lays out the schedules; every other plugin of the engine needs it.
pub struct SchedulePlugin;

impl Plugin for SchedulePlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<RunHealth>();
        arrange(app, Startup, STARTUP, true);
        arrange(app, RoundStart, ROUND_START, true);
        arrange(app, StepStart, STEP_START, true);
        arrange(app, TrainBatch, TRAIN_BATCH, true);
        arrange(app, ValBatch, VAL_BATCH, true);
        arrange(app, StepSync, STEP_SYNC, true);
        arrange(app, Assess, ASSESS, true);
        arrange(app, Decide, DECIDE, true);
        arrange(app, Act, ACT, true);
        arrange(app, StepEnd, STEP_END, true);
        arrange(app, RoundEnd, ROUND_END, true);
        arrange(app, Shutdown, SHUTDOWN, false);
    }
}

/// Chains the sets of a schedule and the work inside each. After a failure nothing runs any more but `Shutdown`.
fn arrange(app: &mut App, label: impl ScheduleLabel + Clone, table: Table, stops_on_failure: bool) {
    app.init_schedule(label.clone());
    app.edit_schedule(label, |schedule| {
        schedule.set_build_settings(ScheduleBuildSettings {
            ambiguity_detection: LogLevel::Error,
            hierarchy_detection: LogLevel::Error,
            ..Default::default()
        });
        for pair in table.windows(2) {
            schedule.configure_sets(pair[1].0.after(pair[0].0));
        }
        for (set, works) in table {
            for work in *works {
                schedule.configure_sets(work.in_set(*set));
                if stops_on_failure {
                    schedule.configure_sets(work.run_if(running));
                }
            }
            for pair in works.windows(2) {
                schedule.configure_sets(pair[1].after(pair[0]));
            }
        }
    });
}
