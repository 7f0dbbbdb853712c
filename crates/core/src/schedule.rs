//! The map of the engine: every schedule, every public system set and every piece of work, in order.
//!
//! The driver (`run::driver`) runs the schedules below. All behaviour is in the systems that plugins add to them. The
//! systems of a schedule run one after another, in the order of its table. Each works on all envs at once, in parallel.
//!
//! ```text
//! Startup
//! for each round:  RoundStart
//!   for each step: StepStart → Batches → StepSync → Assess → Decide → Act → StepEnd
//!                  RoundEnd
//! Shutdown
//!
//! between steps, while a command pauses the run:             Paused
//! between steps, if a checkpoint is due:                     SaveRound
//! after RoundStart, if the run resumes inside this round:    RestoreRound
//! ```
//!
//! To add a system, put it into a public set and order it relative to the [`Work`] that it depends on:
//!
//! ```
//! # extern crate simic_core as simic_engine;
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

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the works link to private systems; `cargo doc --document-private-items` follows them"
)]

mod declare;
mod work;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{InternedScheduleLabel, ScheduleLabel};

use self::declare::{arrange, schedules};
use crate::health::RunHealth;

pub use work::{AddWork, WorkResult};

/// Lays out the schedules; every other plugin of the engine needs it.
pub struct SchedulePlugin;

impl Plugin for SchedulePlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<RunHealth>();
        // Every work may note a failure, the first counts: which of two unordered systems noted it does not matter.
        app.allow_ambiguous_resource::<RunHealth>();
        arrange_all(app);
    }
}

/// The public sets: the vocabulary of extensions.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineSet {
    /// `Startup` and `Shutdown`: the preparations before the first round, and the records after the last.
    Prepare,
    /// `RoundStart`: hosts, slots and trackers of a new episode.
    Reset,
    /// Chooses the samples of the step's batches and begins to read them ahead.
    FetchBatch,
    /// All envs train on the step's batches.
    TrainStep,
    /// The fused validation and counterfactual pass of all envs.
    Validate,
    /// The packed read and the wait for it.
    SyncStreams,
    /// The watchdog: metrics, alarms, rollbacks, captures.
    Govern,
    /// The controller's input: contributions, seed records, signals, reports, masks.
    Observe,
    /// The controller's choice.
    Decide,
    /// The choice is executed.
    Act,
    /// The mechanical tick of every slot.
    Lifecycle,
    /// The reward of the step.
    Reward,
    /// The policy learns from its rollout.
    PpoUpdate,
    /// Statistics and telemetry.
    Record,
    /// State that lasts from round to round, on disk; then the question whether there is a next round.
    Checkpoint,
}

schedules! {
    /// Once: backend, data, controllers, envs.
    Startup {
        Prepare {
            /// Sets process-wide switches before the first tensor: [`init_backend`](crate::run::startup::init_backend).
            InitBackend => "start-up",
            /// Decides whether hosts train in f32, bf16 or fp16: [`choose_precision`](crate::training::precision::choose_precision).
            ChoosePrecision => "start-up",
            /// Opens the devices that the scenario lists: [`open_devices`](crate::run::startup::open_devices).
            OpenDevices => "start-up",
            /// Loads, checks and uploads the data: [`load_datasets`](crate::run::startup::load_datasets).
            LoadDatasets => "start-up",
            /// Tries every seed module at the widths of the run's slots: [`check_blueprints`](crate::run::startup::check_blueprints).
            CheckBlueprints => "start-up",
            /// Reads the seeds that every episode starts with: [`read_initial_topology`](crate::env::initial_topology::read_initial_topology).
            ReadInitialTopology => "start-up",
            /// Reads the weights that every episode starts from: [`read_weights`](crate::env::starting_weights::read_weights).
            ReadWeights => "start-up",
            /// Adds the hook that does the scenario's damage, where there is any: [`arm_faults`](crate::faults::arm_faults).
            ArmFaults => "fault injection",
            /// Makes the controller that the scenario names: [`build_controller`](crate::controller::systems::build_controller).
            BuildController => "start-up",
            /// Makes the learner of a controller that learns: [`build_learner`](crate::learner::systems::build_learner).
            BuildLearner => "start-up",
            /// Gives every env its host, optimizer, slots and stream: [`spawn_envs`](crate::env::episode::spawn_envs).
            SpawnEnvs => "start-up",
            /// Gives every env its feed of batches and its sums: [`equip_envs`](crate::training::batches::equip_envs).
            EquipTraining => "start-up",
            /// Gives every env its folded host and the validation batches: [`equip_envs`](crate::validation::pass::equip_envs).
            EquipValidation => "start-up",
            /// Puts a resumed run where its checkpoint was: [`restore`](crate::checkpoint::systems::restore).
            Restore => "resume",
            /// Makes the run directory, starts the sinks, writes `run_started`: [`announce`](crate::record::announce::announce).
            Announce => "start-up",
            /// Begins the set of trajectories, or continues it: [`begin_set`](crate::record::trajectories::begin_set).
            BeginTrajectories => "trajectories",
            /// Ends the run if its rounds have nothing to gain any more: [`stop_early`](crate::record::systems::stop_early).
            StopEarly => "early stop",
        }
        Checkpoint {
            /// Writes what lasts from round to round, if it is due: [`write_checkpoint`](crate::checkpoint::systems::write_checkpoint).
            WriteCheckpoint => "checkpoint",
        }
    }
    /// Every env starts an episode with a fresh host.
    RoundStart {
        Reset {
            /// Notes when the round began: [`begin_record`](crate::record::systems::begin_record).
            BeginRound => "round start",
            /// Gives every env a fresh host in its old storage and empty slots: [`reset_envs`](crate::env::episode::reset_envs).
            ResetEnvs => "round start",
            /// Resets the loss scales, if training in float16 needs them: [`reset_loss_scales`](crate::training::precision::reset_loss_scales).
            ResetLossScales => "round start",
            /// Germinates the seeds that episodes start with: [`apply_initial_topology`](crate::env::initial_topology::apply_initial_topology).
            ApplyInitialTopology => "initial topology",
            /// Captures the fresh host as the first known good state: [`snapshot_initial`](crate::governor::systems::snapshot_initial).
            SnapshotInitial => "governor",
            /// Lets the controller forget the last episodes: [`begin_episodes`](crate::controller::systems::begin_episodes).
            BeginControllerEpisodes => "round start",
            /// Empties what rewards remember of the last episodes: [`reset_rewards`](crate::reward::systems::reset_rewards).
            ResetRewards => "round start",
        }
    }
    /// One host epoch begins.
    StepStart {
        Reset {
            /// Lets envs whose episode still runs take part in the step: [`activate_envs`](crate::env::episode::activate_envs).
            ActivateEnvs => "step start",
            /// Moves the learning rates of hosts and seeds along their courses: [`set_learning_rates`](crate::training::rates::set_learning_rates).
            SetLearningRates => "learning rate",
        }
    }
    /// The batches of the step: all envs train, then all validate. Inside either, env by env on CPUs, batch by batch on other
    /// devices. To look into a batch, add a hook: [`OnBatch`](crate::training::OnBatch).
    Batches {
        FetchBatch {
            /// Fixes order and augmentation of the step's samples, asks for the first, zeroes the sums: [`fetch_batches`](crate::training::batches::fetch_batches).
            FetchBatches => "data order",
        }
        TrainStep {
            /// Trains all envs: [`train_batches`](crate::training::batches::train_batches).
            TrainBatches => "training batches",
        }
        Validate {
            /// Measures all networks, with their seeds and without: [`validate_batches`](crate::validation::pass::validate_batches).
            ValidateBatches => "validation batches",
        }
    }
    /// The step's only wait on devices.
    StepSync {
        SyncStreams {
            /// Ends the episodes of envs whose batches failed: [`drop_failed_envs`](crate::env::episode::drop_failed_envs).
            DropFailedEnvs => "batches of all envs",
            /// Puts what captures counted into the read packs: [`carry_snapshot_counts`](crate::governor::systems::carry_snapshot_counts).
            CarrySnapshotCounts => "governor",
            /// Reduces what the training batches left, on the device: [`reduce_sums`](crate::training::batches::reduce_sums).
            EnqueueReads => "read",
            /// Waits for all devices, once a step: [`wait_all`](crate::validation::assess::wait_all).
            WaitAll => "wait",
            /// Reads every env's pack and names its numbers: [`unpack`](crate::validation::assess::unpack).
            Unpack => "read",
        }
    }
    /// Assessment of the step's numbers.
    Assess {
        Govern {
            /// Loss and accuracy of the step's training batches: [`derive_train_metrics`](crate::training::batches::derive_train_metrics).
            DeriveTrainMetrics => "metrics",
            /// Loss and accuracy of the whole validation part: [`derive_val_metrics`](crate::validation::assess::derive_val_metrics).
            DeriveValMetrics => "metrics",
            /// Adds up what the step's batches took to compute: [`count_compute`](crate::validation::assess::count_compute).
            CountCompute => "metrics",
            /// Replaces validation losses where the scenario says so: [`spike_losses`](crate::faults::spike_losses).
            SpikeLosses => "fault injection",
            /// Judges every env's validation loss: [`governor_check`](crate::governor::systems::governor_check).
            GovernorCheck => "governor",
            /// Restores the envs that panicked: [`governor_rollback`](crate::governor::rollback::governor_rollback).
            GovernorRollback => "rollback",
            /// Charges rollbacks to the transitions that led to them: [`credit_rollbacks`](crate::learner::systems::credit_rollbacks).
            CreditRollbacks => "rollback",
            /// Drops what rewards remember of seeds that a rollback pruned: [`forget_pruned_seeds`](crate::reward::systems::forget_pruned_seeds).
            ForgetPrunedSeeds => "reward",
            /// Captures healthy envs and promotes captures: [`governor_snapshot`](crate::governor::systems::governor_snapshot).
            GovernorSnapshot => "governor",
            /// Writes `governor_rollback`: [`report_rollbacks`](crate::governor::rollback::report_rollbacks).
            ReportRollbacks => "rollback",
        }
        Observe {
            /// Measures what each seed contributes: [`attribute`](crate::validation::assess::attribute).
            Attribute => "attribution",
            /// Writes the step's accuracy and gradients into the seeds' records: [`track_seeds`](crate::env::episode::track_seeds).
            TrackSeeds => "tracking",
            /// Follows losses, accuracies and the host's stability: [`update_signals`](crate::controller::view::signals::update_signals).
            UpdateSignals => "signals",
            /// Describes every slot for controllers and records: [`report_slots`](crate::controller::systems::report_slots).
            ReportSlots => "tracking",
        }
    }
    /// One decision per env.
    Decide {
        Observe {
            /// Turns signals and reports into the numbers that a policy sees: [`build_observations`](crate::controller::systems::build_observations).
            BuildObservations => "decision",
            /// Determines what each env may do: [`build_masks`](crate::controller::systems::build_masks).
            BuildMasks => "decision",
            /// Scales observations by their running statistics: [`normalise_observations`](crate::controller::systems::normalise_observations).
            NormaliseObservations => "decision",
        }
        Decide {
            /// Lets the controller choose for all envs at once: [`decide`](crate::controller::systems::decide).
            Decide => "decision",
            /// Opens a transition for each decision: [`store_decisions`](crate::learner::systems::store_decisions).
            StoreDecisions => "rollout",
        }
    }
    /// The decision takes effect; slots tick.
    Act {
        Act {
            /// Keeps how the seeds stood before the action: [`capture_reward_inputs`](crate::reward::systems::capture_reward_inputs).
            CaptureRewardInputs => "reward",
            /// Carries out the chosen command: [`execute_action`](crate::controller::systems::execute_action).
            ExecuteAction => "action",
        }
        Lifecycle {
            /// Ticks every slot: ramps, gates, transitions: [`advance_lifecycle`](crate::env::lifecycle::advance_lifecycle).
            AdvanceLifecycle => "lifecycle",
        }
        Reward {
            /// Pays the step: [`compute_reward`](crate::reward::systems::compute_reward).
            ComputeReward => "reward",
        }
        Record {
            /// Completes the transitions with their rewards: [`store_outcomes`](crate::learner::systems::store_outcomes).
            StoreOutcomes => "rollout",
            /// Records observations and decisions: [`record_steps`](crate::trajectory::collect::record_steps).
            RecordTrajectories => "trajectories",
            /// Carries the orders over to the next observation: [`update_tracking`](crate::controller::systems::update_tracking).
            UpdateTracking => "tracking",
        }
        Govern {
            /// Captures envs that committed a seed: [`commit_snapshot`](crate::governor::systems::commit_snapshot).
            CommitSnapshot => "governor",
        }
    }
    /// Episode ends, telemetry.
    StepEnd {
        Record {
            /// Ends the episodes that reached the horizon: [`end_episodes`](crate::env::episode::end_episodes).
            EndEpisodes => "episode end",
            /// Closes the segments of episodes that ended: [`end_segments`](crate::learner::systems::end_segments).
            EndSegments => "rollout",
            /// Records the observation after the last step of an episode: [`end_trajectories`](crate::trajectory::collect::end_trajectories).
            EndTrajectories => "trajectories",
            /// Evaluates networks whose episode ended on the test part: [`evaluate_test`](crate::validation::test_part::evaluate_test).
            EvaluateTest => "final test",
            /// Writes `env_step` and `decision`: [`emit_step`](crate::record::systems::emit_step).
            EmitStep => "record",
        }
        Checkpoint {
            /// Obeys the command that a person has sent to the run, if any: [`take_command`](crate::run::take_command).
            TakeCommand => "command",
            /// Saves what anomalies are about and ends the run, where the scenario says so: [`answer_anomalies`](crate::checkpoint::anomalies::answer_anomalies).
            AnswerAnomalies => "anomalies",
            /// Asks for a checkpoint inside the round, if one is due: [`plan_checkpoint`](crate::checkpoint::inside::plan_checkpoint).
            PlanCheckpoint => "checkpoint",
        }
    }
    /// Runs again and again while a command has paused the run after a step.
    Paused {
        Checkpoint {
            again TakeCommand,
        }
    }
    /// Writes the current, unfinished round to disk if a checkpoint is due. State to be kept is registered: plain components and
    /// pairs of systems by [`KeepInRounds`](crate::env::KeepInRounds).
    SaveRound {
        Checkpoint {
            /// Keeps all state that was registered by [`keep_in_rounds`](crate::env::KeepInRounds): [`keep_round`](crate::env::unfinished::keep_round).
            KeepRound => "checkpoint",
            /// Puts all of it on disk: [`write_round`](crate::checkpoint::inside::write_round).
            WriteRound => "checkpoint",
        }
    }
    /// Once, if the run resumes inside the round that has just begun: restores all of its state.
    RestoreRound {
        Checkpoint {
            /// Takes back what [`Work::KeepRound`] has kept: [`restore_round`](crate::env::unfinished::restore_round).
            RestoreState => "resume",
            /// Sets the clock, and discards the events of the round's beginning, which are in the record already: [`enter_round`](crate::checkpoint::inside::enter_round).
            EnterRound => "resume",
        }
    }
    /// Outcomes of the episodes.
    RoundEnd {
        PpoUpdate {
            /// Updates the policy from its rollout: [`update_policy`](crate::learner::systems::update_policy).
            UpdatePolicy => "policy update",
        }
        Record {
            /// Writes `episode_finished`: [`record_episodes`](crate::record::systems::record_episodes).
            RecordEpisodes => "episode end",
            /// Measures the round by the metrics of plugins: [`measure_round`](crate::telemetry::measure_round).
            MeasureRound => "metrics",
            /// Writes `learner_update` and `round_finished`: [`round_stats`](crate::record::systems::round_stats).
            RoundStats => "record",
            /// Takes out the networks that the run keeps: [`keep_networks`](crate::keep::keep_networks),
            /// [`write_unsaved`](crate::keep::write_unsaved).
            KeepNetworks => "networks",
            /// Writes the round's trajectories: [`write_trajectories`](crate::record::trajectories::write_trajectories).
            WriteTrajectories => "trajectories",
            /// Removes all seeds and their optimizers: [`teardown_round`](crate::env::episode::teardown_round).
            TeardownRound => "episode end",
        }
        Checkpoint {
            again AnswerAnomalies,
            again WriteCheckpoint,
            again StopEarly,
            /// Ends a run whose record cannot be written: [`stop_if_record_fails`](crate::record::systems::stop_if_record_fails).
            StopIfRecordFails => "record",
            /// Fails the run if the policy can no longer be updated: [`stop_if_diverged`](crate::learner::systems::stop_if_diverged).
            StopIfDiverged => "policy update",
        }
    }
    /// Runs in every case, even after an error or a stop.
    Shutdown {
        Record {
            /// Writes what memory was in use, if the run ends because none was left: [`keep_memory`](crate::record::memory::keep_memory).
            KeepMemory => "record",
        }
        Checkpoint {
            again WriteCheckpoint,
            again KeepNetworks,
        }
        Prepare {
            /// Plays the best episode again with a host that never grows: [`measure_control`](crate::engine::control::measure_control).
            MeasureControl => "control",
        }
    }
}
