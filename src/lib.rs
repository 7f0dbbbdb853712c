//! An ECS simulation engine for **morphogenetic training**: neural networks that grow while they train.
//!
//! Small *seed modules* germinate in the *slots* of a *host* network. They learn there in isolation, are blended in, and are
//! then committed or pruned. A *controller* decides once per step for each of many such trainings. It is a rule, or a
//! recurrent policy trained by PPO. Each training is one *env*: an entity of bevy's ECS whose components are its host,
//! optimizers, slots and measurements. Ordered systems work on all envs at once. Tensors are libtorch's.
//!
//! - [A run](#a-run): from a scenario to results
//! - [Plugins](#plugins): the parts of the engine
//! - [Extending it](#extending-it): a section for each kind of part
//! - [Determinism](#determinism), [Records](#records), [Errors](#errors)
//! - [Where to read on](#where-to-read-on)
//!
//! # Features
//!
//! - Hosts: convolutional networks, ResNets, VGGs and language models; seed modules for images and texts.
//! - Data: embedded digits, procedural images and texts, the published image sets, folders of images, NPY, Parquet, token files.
//! - Decisions: a recurrent policy with masked, factored actions trained by PPO; rules, published schedules, recordings.
//! - Measurements: all on/off configurations of the live seeds in one validation pass, contributions and Shapley values.
//! - Safety: a governor with rollbacks per env, checkpoints between rounds and inside them, runs that resume bit for bit.
//! - Experiments: sweeps over machines, paired comparisons, held-out evaluations, from one command line.
//! - Devices: the same scenario runs on CPUs and CUDA devices. The numbers don't depend on the number of threads.
//!
//! The crate needs libtorch. The `README.md` of the repository says how to get it. The only Cargo feature, `wheel`, is for the
//! Python package.
//!
//! # A run
//!
//! An experiment is a *scenario*, a text or file in RON. Every field has a default. An [`Engine`](prelude::Engine) runs the
//! scenario, at once or step by step:
//!
//! ```
//! use simic_engine::prelude::*;
//!
//! let mut engine = Engine::from_ron(
//!     r#"(
//!         task: preset("digits_minimal", (batches_per_step: count(1))),
//!         run: (rounds: 1, n_envs: 2, max_steps: 3),
//!         policy: (controller: "random"),
//!     )"#,
//! )?;
//! engine.run()?;
//!
//! let mut envs = engine.world_mut().query::<(&EnvId, &ValMetrics)>();
//! for (env, metrics) in envs.iter(engine.world()) {
//!     println!("env {}: {:.1} %", env.index, metrics.accuracy_percent);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Engine::builder`](prelude::Engine::builder) overrides fields, sets threads, records the run in its own folder and adds
//! plugins. `examples/step_by_step.rs` drives an engine from a program. [`cli::main`] is the whole command line, for a program
//! that adds plugins to it. `simic-engine new` writes such a crate.
//!
//! # Plugins
//!
//! The engine is the group [`SimicPlugins`](prelude::SimicPlugins). You can leave out any of its plugins
//! ([`EngineBuilder::without`](extend::EngineBuilder::without)) or replace it. If another part needs it, an error says so before
//! anything runs.
//!
//! | plugin | does |
//! | --- | --- |
//! | [`SchedulePlugin`](prelude::SchedulePlugin) | schedules and sets in order |
//! | [`TelemetryPlugin`](extend::TelemetryPlugin) | events and their sinks |
//! | [`StartupPlugin`](extend::StartupPlugin) | backend, devices, data |
//! | [`EnvPlugin`](extend::EnvPlugin) | env entities and their episodes |
//! | [`TrainingPlugin`](extend::TrainingPlugin) | train steps of hosts and seeds |
//! | [`ValidationPlugin`](extend::ValidationPlugin) | the coalition pass and the contributions of seeds |
//! | [`GovernorPlugin`](extend::GovernorPlugin) | a watchdog per env: alarms, snapshots, rollbacks, vetoes |
//! | [`FaultPlugin`](extend::FaultPlugin) | the damage that a scenario asks for |
//! | [`ControllerPlugin`](extend::ControllerPlugin) | observations, masks, decisions and their execution |
//! | [`RewardPlugin`](extend::RewardPlugin) | the reward of a decision |
//! | [`LearnerPlugin`](extend::LearnerPlugin) | rollouts and updates of the policy |
//! | [`KeepPlugin`](extend::KeepPlugin) | the networks that a run keeps, as values and files |
//! | [`RecordPlugin`](extend::RecordPlugin) | the folder of a recorded run, and everything written to it |
//! | [`CheckpointPlugin`](extend::CheckpointPlugin) | checkpoints of a recorded run, and resuming from them |
//!
//! [`PriorArtPlugin`] adds older rewards and networks, in the same way as a plugin of yours. The command line includes it.
//!
//! # Extending it
//!
//! An extension is a bevy plugin: a type, or a plain function of the [`App`](prelude::App). It registers parts by name, adds systems,
//! or both. Scenarios choose parts by these names, and `explain`, `list` and error messages know them. The engine builds an
//! extension once to learn the names and again for each run, so an extension only adds: see [`Extension`](prelude::Extension).
//!
//! ```
//! use simic_engine::prelude::*;
//!
//! fn extend(app: &mut App) {
//!     let mut metrics = app.world_mut().resource_mut::<Metrics>();
//!     metrics.register("envs", "envs of the run", Arc::new(|world: &mut World| {
//!         world.query::<&EnvId>().iter(world).count() as f64
//!     }));
//! }
//!
//! let engine = Engine::builder().with(extend).from_ron(r#"(policy: (controller: "wait"))"#)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`prelude`] has the names that an extension usually needs. [`extend`] has the others, grouped by subject. Each of the sections
//! below names its programs in `examples/`.
//!
//! ## Systems
//!
//! Put a system into a public set of a schedule, and order it relative to the engine's [`Work`](prelude::Work). It sees the
//! components of all envs: [`ValMetrics`](prelude::ValMetrics), [`SeedSlots`](prelude::SeedSlots),
//! [`HostModel`](prelude::HostModel) and others. Example: `examples/custom_system.rs`.
//!
//! ```
//! use simic_engine::prelude::*;
//!
//! fn watch(envs: Query<(&EnvId, &ValMetrics)>) {
//!     for (env, metrics) in &envs {
//!         println!("env {}: {:.1} %", env.index, metrics.accuracy_percent);
//!     }
//! }
//!
//! fn extend(app: &mut App) {
//!     app.add_systems(Assess, watch.in_set(EngineSet::Observe).after(Work::ReportSlots));
//! }
//! ```
//!
//! ## Hooks into batches
//!
//! [`OnBatch`](prelude::OnBatch) calls a function for every env at a [point](prelude::BatchPoint) of each batch: when the samples
//! to train on have arrived, after the backward pass, after the update, after validation. In training it may change the values
//! that it gets. Example: `examples/custom_batch_hook.rs`.
//!
//! ```
//! use simic_engine::prelude::*;
//!
//! fn extend(app: &mut App) {
//!     app.on_batch(BatchPoint::Fetched, |batch| {
//!         println!("batch {} of {}: {} samples", batch.index + 1, batch.count, batch.samples.n);
//!         Ok(())
//!     });
//! }
//! ```
//!
//! ## Hosts
//!
//! A [`HostPlan`](prelude::HostPlan) is a line of layers with slots between them; a custom layer is a
//! [`LayerDesign`](extend::LayerDesign) that builds a [`Layer`](extend::Layer). Register the plan in
//! [`HostRegistry`](prelude::HostRegistry). Example: `examples/custom_host.rs`.
//!
//! ```
//! use simic_engine::extend::{Conv, ResidualBlock};
//! use simic_engine::prelude::*;
//!
//! fn extend(app: &mut App) {
//!     let mut hosts = app.world_mut().resource_mut::<HostRegistry>();
//!     let plan = |classes| {
//!         HostPlan::new(1, 8)
//!             .layer("stem", Conv::new(8, 3))
//!             .slot(0, 0)
//!             .layer("block", ResidualBlock::new(16, 2))
//!             .slot(0, 1)
//!             .head(classes)
//!     };
//!     hosts.register("small", "a stem and a residual block", Arc::new(plan));
//! }
//! ```
//!
//! ## Seed modules
//!
//! A [`Blueprint`](prelude::Blueprint) builds [`SeedModule`](prelude::SeedModule)s. Each is a residual that is 0 when it germinates.
//! Register the blueprint in [`BlueprintRegistry`](prelude::BlueprintRegistry). Each run tests it against its contract when it
//! starts. Examples: `examples/custom_seed_module.rs`, and the one at [`Blueprint`](prelude::Blueprint).
//!
//! ## Data
//!
//! Register a function in [`DataRegistry`](prelude::DataRegistry) that returns [`CustomImages`](prelude::CustomImages): bytes with
//! labels. You split them, or the engine does. Example: `examples/custom_data.rs`.
//!
//! ## Controllers
//!
//! A [`Controller`](prelude::Controller) answers the [`MaskSet`](prelude::MaskSet)s of all envs with one
//! [`Decision`](prelude::Decision) each. Register it in [`ControllerRegistry`](prelude::ControllerRegistry). To decide in your own
//! program instead, step by step, fill [`ExternalCommands`](extend::ExternalCommands). Examples:
//! `examples/custom_controller.rs`, and the one at [`Controller`](prelude::Controller).
//!
//! ## Observations
//!
//! Register features of the env or of each slot in [`ObservationFeatures`](extend::ObservationFeatures). Every controller that asks
//! for observations sees them, including the learned one. Example: `examples/custom_observation.rs`.
//!
//! ```
//! use simic_engine::extend::{Extract, ObservationFeature, ObservationFeatures, Treatment};
//! use simic_engine::prelude::*;
//!
//! fn extend(app: &mut App) {
//!     let mut features = app.world_mut().get_resource_or_init::<ObservationFeatures>();
//!     features.register(ObservationFeature {
//!         name: "train_loss".into(),
//!         extract: Extract::env(|env| Some(env.signals.train_loss)),
//!         range: 0.0..=10.0,
//!         treatment: Treatment::Normalised,
//!     });
//! }
//! ```
//!
//! ## Policy networks
//!
//! An [`ActorCritic`](extend::ActorCritic) turns sequences of observations into logits and values. The engine does masks, sampling,
//! recurrent rows and PPO. Register the network in [`NetRegistry`](prelude::NetRegistry). If it differs from the built-in network
//! only in its core, write a [`NetCore`](prelude::NetCore). Example: `examples/custom_network.rs`.
//!
//! ## Rewards
//!
//! The `reward:` of a scenario names a [`RewardMode`](prelude::RewardMode): a pure function of a step and of its memory of the episode
//! (`examples/custom_reward_mode.rs`). A term of [`RewardTerms`](prelude::RewardTerms) is added to every mode
//! (`examples/custom_reward.rs`).
//!
//! ```
//! use simic_engine::prelude::*;
//!
//! fn extend(app: &mut App) {
//!     let mut terms = app.world_mut().resource_mut::<RewardTerms>();
//!     let price = |step: &RewardInputs| -0.05 * step.slots.iter().filter(|slot| slot.after.is_some()).count() as f64;
//!     terms.register("thrift", "a price on every seed", Arc::new(price));
//! }
//! ```
//!
//! ## Metrics
//!
//! A function in [`Metrics`](prelude::Metrics) measures every round. The engine records its number, draws it in reports and shows it
//! in the summary. Examples: `examples/custom_metric.rs`, and the one above.
//!
//! ## Sinks
//!
//! A [`Sink`](extend::Sink) gets every [`Event`](extend::Event) of a recorded run while it runs, on its own thread. Register it in
//! [`Sinks`](extend::Sinks). Examples: `examples/custom_sink.rs`, and the one at [`Sink`](extend::Sink).
//!
//! ## State
//!
//! Components and resources of an extension live as long as the process. If you register them with
//! [`KeepInRounds`](prelude::KeepInRounds), a checkpoint inside a round keeps them. Example: `examples/kept_state.rs`.
//!
//! ## The learner without the engine
//!
//! [`Learner`](extend::Learner) and [`RolloutBuffer`](extend::RolloutBuffer) don't need the ECS. A custom loop can act, store
//! and learn. Example: `examples/learner.rs`.
//!
//! # Determinism
//!
//! Every random draw is derived from `run.seed` and from the place of the draw. None depends on timing or on the number of threads.
//! An env's numbers depend only on its own components. On one machine the same scenario gives the same bits:
//!
//! ```
//! use simic_engine::prelude::*;
//!
//! let accuracies = |threads| -> Result<Vec<f64>, Box<dyn std::error::Error>> {
//!     let mut engine = Engine::builder().threads(threads).from_ron(
//!         r#"(
//!             task: preset("digits_minimal", (batches_per_step: count(1))),
//!             run: (rounds: 1, n_envs: 3, max_steps: 2),
//!             policy: (controller: "random"),
//!         )"#,
//!     )?;
//!     engine.run()?;
//!     let mut envs = engine.world_mut().query::<&ValMetrics>();
//!     Ok(envs.iter(engine.world()).map(|metrics| metrics.accuracy_percent).collect())
//! };
//! assert_eq!(accuracies(1)?, accuracies(2)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! On CUDA, set `run.deterministic`. An extension stays deterministic if it draws from [`RunRng`](prelude::RunRng) and doesn't depend
//! on the order of envs.
//!
//! # Records
//!
//! A recorded run has its own folder, with the scenario and all its defaults, every event, the checkpoints and the log. You also get
//! its results as values:
//!
//! ```
//! use simic_engine::prelude::*;
//!
//! let runs = tempfile::tempdir()?;
//! let mut engine = Engine::builder().recorded(runs.path()).from_ron(
//!     r#"(
//!         task: preset("digits_minimal", (batches_per_step: count(1))),
//!         run: (rounds: 2, n_envs: 1, max_steps: 2),
//!         policy: (controller: "wait"),
//!     )"#,
//! )?;
//! let record = engine.run()?.record.expect("it was recorded");
//! assert!(record.directory.join("events.jsonl").exists());
//! let results = record.results.expect("the run has begun");
//! assert_eq!(results.rounds.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `simic-engine show`, `runs`, `check` and `diff` read the same folders, and `resume` continues a run.
//!
//! # Errors
//!
//! The engine refuses an invalid scenario before anything runs. [`SetupError`](extend::SetupError) has every problem, its line and
//! what would be valid. A system that fails ends the run and closes its record ([`EngineError`](extend::EngineError)), or ends only
//! its env, depending on `run.on_env_error`. Each variant of an error enum documents when it occurs.
//!
//! # Where to read on
//!
//! - `docs/architecture.md`: the layout of the engine, and how batches, decisions, faults and scenario fields pass through it.
//! - `docs/reference/`: formulas and constants by subject; `docs/reference/scenario.md` has every field.
//! - `docs/glossary.md`: the words of code and documents, and how to write both.
//! - `crates/core/src/schedule.rs`: every schedule, public set and piece of work, in order, with links to the functions.
//!   `crates/core/src/run/driver.rs` is the loop that runs them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
// Both panic where no one reads: see `cli::output`.
#![warn(clippy::print_stderr, clippy::print_stdout)]
// No action of a user, file or device may end in a panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used))]

pub use prior_art::PriorArtPlugin;
pub use simic_core::{choice, section};
#[doc(inline)]
pub use simic_core::{extend, prelude};
// Names that the modules below use.
use simic_core::{
    actions, checkpoint, clock, controller, data, engine, env, files, graph, growth, hash, health, host, keep, learner,
    network, policy, random, record, reward, run, scenario, schedule, schema, seed, storage, telemetry, threads, torch,
    training, trajectory, validation,
};

#[doc(hidden)]
pub mod prior_art;
#[doc(hidden)]
pub mod serve;
#[doc(hidden)]
pub mod compare;
#[doc(hidden)]
pub mod sweep;
#[doc(hidden)]
pub mod eval;
#[doc(hidden)]
pub mod grow;
#[doc(hidden)]
pub mod adapt;
#[doc(hidden)]
pub mod report;
#[doc(hidden)]
pub mod tables;
#[doc(hidden)]
pub mod inspect;
#[doc(hidden)]
pub mod export;
pub mod cli;

/// The modules of all crates, for tests and benchmarks of their internals. They may change with every version.
#[doc(hidden)]
pub mod internals {
    pub use simic_core::{
        actions, checkpoint, clock, controller, data, engine, env, faults, governor, growth, health, host, keep,
        kernels, learner, network, nn, policy, random, record, reward, run, scenario, schedule, schema, seed, storage,
        telemetry, torch, training, trajectory, validation,
    };

    pub use crate::{compare, eval, export, inspect, prior_art, report, sweep, tables};
}

/// The Rust examples of README and guide, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/guide/src/your-host.md")]
#[doc = include_str!("../docs/guide/src/extensions.md")]
struct Pages;
