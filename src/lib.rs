//! An ECS simulation engine for **morphogenetic training**: neural networks that grow while they train.
//!
//! Small *seed modules* germinate in *slots* of a *host* network, learn there in isolation, are blended in, and are committed
//! or pruned. A *controller*, a recurrent policy trained by PPO or a rule, decides once per step for each of many such
//! trainings. Each training is one *env*: an entity of bevy's ECS whose components are its host, optimizers, slots and
//! measurements. Ordered systems work on all envs at once; tensors are libtorch's.
//!
//! - [A run](#a-run): from a scenario to results
//! - [Plugins](#plugins): what the engine consists of
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
//! - Safety: a governor with rollbacks per env, checkpoints between rounds and inside them, runs that continue bit for bit.
//! - Experiments: sweeps over machines, paired comparisons, held-out evaluations, from one command line.
//! - One scenario runs on CPUs and CUDA devices; the numbers do not depend on the number of threads.
//!
//! Its one Cargo feature, `wheel`, is for the Python package. It needs libtorch, which the `README.md` of the repository says how to get.
//!
//! # A run
//!
//! An experiment is a *scenario*, a text or file in RON; what it leaves out has a default. An [`Engine`](prelude::Engine) runs
//! it, whole or step by step:
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
//! [`Engine::builder`](prelude::Engine::builder) overrides fields, sets threads, records the run in a folder of its own and adds
//! plugins. `examples/step_by_step.rs` drives an engine from a program. [`cli::main`] is the whole command line, for a program
//! with plugins of its own; `simic-engine new` writes such a crate.
//!
//! # Plugins
//!
//! [`SimicPlugins`](prelude::SimicPlugins) is the group of them. Any can be left out
//! ([`EngineBuilder::without`](extend::EngineBuilder::without)) or replaced; what is then missing is named before anything runs.
//!
//! | plugin | does |
//! | --- | --- |
//! | [`SchedulePlugin`](prelude::SchedulePlugin) | schedules and sets in order |
//! | [`TelemetryPlugin`](extend::TelemetryPlugin) | events and their sinks |
//! | [`StartupPlugin`](extend::StartupPlugin) | backend, devices, data |
//! | [`EnvPlugin`](extend::EnvPlugin) | env entities and their episodes |
//! | [`TrainingPlugin`](extend::TrainingPlugin) | train steps of hosts and seeds |
//! | [`ValidationPlugin`](extend::ValidationPlugin) | the coalition pass and what seeds contribute |
//! | [`GovernorPlugin`](extend::GovernorPlugin) | a watchdog per env: alarms, snapshots, rollbacks, vetoes |
//! | [`FaultPlugin`](extend::FaultPlugin) | damage on purpose, as the scenario asks for |
//! | [`ControllerPlugin`](extend::ControllerPlugin) | observations, masks, decisions and their execution |
//! | [`RewardPlugin`](extend::RewardPlugin) | what a decision is paid |
//! | [`LearnerPlugin`](extend::LearnerPlugin) | rollouts and updates of the policy |
//! | [`KeepPlugin`](extend::KeepPlugin) | the networks that a run keeps, as values and files |
//! | [`RecordPlugin`](extend::RecordPlugin) | of a recorded run: its folder and what is written of it |
//! | [`CheckpointPlugin`](extend::CheckpointPlugin) | of a recorded run: checkpoints and resumed runs |
//!
//! [`PriorArtPlugin`] adds older rewards and networks, as any plugin of an application would; the command line
//! has it.
//!
//! # Extending it
//!
//! An extension is a bevy plugin, a type or a plain function of the [`App`](prelude::App). It registers parts by name, adds systems, or
//! both; scenarios choose parts by these names, and `explain`, `list` and error messages know them. It is built for the
//! names and again for each run, so it only adds: see [`Extension`](prelude::Extension).
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
//! [`prelude`] has the names that an extension usually needs, [`extend`] the others, by what they extend. Each of the following
//! has one program in `examples/`.
//!
//! ## Systems
//!
//! A system goes into a public set of a schedule and is ordered against the engine's [`Work`](prelude::Work). It sees all envs as
//! components: [`ValMetrics`](prelude::ValMetrics), [`SeedSlots`](prelude::SeedSlots), [`HostModel`](prelude::HostModel), ….
//! `examples/custom_system.rs`.
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
//! [`OnBatch`](prelude::OnBatch) calls a function of every env at a [point](prelude::BatchPoint) of each batch: when the samples
//! to train on are there, after the backward pass, after the update, after validation. In training it may change what it sees.
//! `examples/custom_batch_hook.rs`.
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
//! [`LayerDesign`](extend::LayerDesign) that builds a [`Layer`](extend::Layer). [`HostRegistry`](prelude::HostRegistry) takes it.
//! `examples/custom_host.rs`.
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
//! A [`Blueprint`](prelude::Blueprint) builds [`SeedModule`](prelude::SeedModule)s, each a residual that is 0 when it germinates.
//! [`BlueprintRegistry`](prelude::BlueprintRegistry) takes it, and each run tries it against its contract when it starts.
//! `examples/custom_seed_module.rs`, and the example at [`Blueprint`](prelude::Blueprint).
//!
//! ## Data
//!
//! [`DataRegistry`](prelude::DataRegistry) takes a function that returns [`CustomImages`](prelude::CustomImages): bytes with labels,
//! split or to be split. `examples/custom_data.rs`.
//!
//! ## Controllers
//!
//! A [`Controller`](prelude::Controller) answers the [`MaskSet`](prelude::MaskSet)s of all envs with one
//! [`Decision`](prelude::Decision) each. [`ControllerRegistry`](prelude::ControllerRegistry) takes it. `examples/custom_controller.rs`, and
//! the example at [`Controller`](prelude::Controller). A program that decides itself, step by step, fills
//! [`ExternalCommands`](extend::ExternalCommands).
//!
//! ## Observations
//!
//! [`ObservationFeatures`](extend::ObservationFeatures) takes features of the env or of each slot, which every controller that asks for
//! observations sees, the learned one among them. `examples/custom_observation.rs`.
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
//! An [`ActorCritic`](extend::ActorCritic) turns sequences of observations into logits and values; masks, sampling, recurrent rows and
//! PPO are the engine's. [`NetRegistry`](prelude::NetRegistry) takes it; one that differs from the built-in network by its core
//! alone is a [`NetCore`](prelude::NetCore). `examples/custom_network.rs`.
//!
//! ## Rewards
//!
//! A [`RewardMode`](prelude::RewardMode) is what `reward:` of a scenario names: a pure function of a step and of what it remembers of
//! the episode (`examples/custom_reward_mode.rs`). A term of [`RewardTerms`](prelude::RewardTerms) is added to every mode
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
//! A function of [`Metrics`](prelude::Metrics) measures every round; its number is recorded, drawn in reports and shown in the
//! summary. `examples/custom_metric.rs`, and the example above.
//!
//! ## Sinks
//!
//! A [`Sink`](extend::Sink) gets every [`Event`](extend::Event) of a recorded run while it runs, on a thread of its own.
//! [`Sinks`](extend::Sinks) takes it. `examples/custom_sink.rs`, and the example at [`Sink`](extend::Sink).
//!
//! ## State
//!
//! Components and resources of an extension live as long as the process. What has to outlast it inside a round is registered with
//! [`KeepInRounds`](prelude::KeepInRounds), and a checkpoint inside the round keeps it. `examples/kept_state.rs`.
//!
//! ## The learner without the engine
//!
//! [`Learner`](extend::Learner) and [`RolloutBuffer`](extend::RolloutBuffer) know no ECS: a custom loop can act, store and learn.
//! `examples/learner.rs`.
//!
//! # Determinism
//!
//! Every random draw is derived from `run.seed` and from where it is made; none depends on timing or on the number of threads. An
//! env's numbers depend on its own components alone. On one machine the same scenario gives the same bits:
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
//! On CUDA this takes `run.deterministic`. An extension keeps it if it draws from [`RunRng`](prelude::RunRng) and lets nothing depend on
//! the order in which envs come.
//!
//! # Records
//!
//! A recorded run has a folder of its own: the scenario with all defaults, every event, checkpoints, the log. Its results are
//! values as well:
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
//! `simic-engine show`, `runs`, `check` and `diff` read the same folders, `resume` continues them.
//!
//! # Errors
//!
//! A scenario is refused before anything runs, with every problem, its line and what would be valid
//! ([`SetupError`](extend::SetupError)). A system that fails ends the run with its record closed
//! ([`EngineError`](extend::EngineError)), or its env alone, as `run.on_env_error` says. An error enum of this crate says of
//! each variant when it occurs.
//!
//! # Where to read on
//!
//! - `docs/architecture.md`: how the engine is laid out, and the ways of a batch, a decision, a fault and a scenario field.
//! - `docs/reference/`: formulas and constants by subject; `docs/reference/scenario.md` has every field.
//! - `docs/glossary.md`: the words that code and documents use.
//! - `crates/core/src/schedule.rs`: every schedule, public set and piece of work, in order; `run/driver.rs` beside it is the
//!   loop that runs them. From there one step leads to a subject's folder and its plugin.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
// Both panic where no one reads: see `cli::output`.
#![warn(clippy::print_stderr, clippy::print_stdout)]
// Nothing that users, files or devices bring about may end in a panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used))]

pub use prior_art::PriorArtPlugin;
pub use simic_core::{choice, section};
#[doc(inline)]
pub use simic_core::{extend, prelude};
// What the rooms below name.
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

/// The rooms of all crates, for tests and benchmarks of their insides: may change with every version.
#[doc(hidden)]
pub mod internals {
    pub use simic_core::{
        actions, checkpoint, clock, controller, data, engine, env, faults, governor, growth, health, host, keep,
        kernels, learner, network, nn, policy, random, record, reward, run, scenario, schedule, schema, seed, storage,
        telemetry, torch, training, trajectory, validation,
    };

    pub use crate::{compare, eval, export, inspect, prior_art, report, sweep, tables};
}

/// Rust examples of README and guide, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/guide/src/your-host.md")]
#[doc = include_str!("../docs/guide/src/extensions.md")]
struct Pages;
