//! An ECS simulation engine for **morphogenetic training**: neural networks that grow while they train.
//!
//! Small *seed modules* germinate in *slots* of a *host* network, learn there in isolation, are blended in, and are committed
//! or pruned. A *controller*, a recurrent policy trained by PPO or a rule, decides once per step for each of many such
//! trainings. Each training is one *env*: an entity whose components are its host, optimizers, slots and measurements. Ordered
//! systems work on all envs at once.
//!
//! # A run
//!
//! An experiment is a RON text or file; whatever it leaves out has a default. An [`Engine`](prelude::Engine) plays it, whole or
//! step by step:
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
//! names that scenarios may use.
//!
//! # Plugins
//!
//! [`SimicPlugins`](prelude::SimicPlugins) is the group of them. Any can be left out or replaced; what is then missing is named
//! before anything runs.
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
//! | [`RecordPlugin`](extend::RecordPlugin) | of a recorded run: its folder and what is written of it |
//! | [`CheckpointPlugin`](extend::CheckpointPlugin) | of a recorded run: checkpoints and resumed runs |
//!
//! [`PriorArtPlugin`] adds older rewards and networks, as any plugin of an application would; the command line
//! has it.
//!
//! # Where to start reading
//!
//! `crates/core/src/schedule.rs` lists every schedule, every public set and every piece of work in order; `run/driver.rs` beside
//! it is the loop that runs them. From there one step leads to a subject's folder and its plugin. [`prelude`] is what an
//! extension usually names, [`extend`] what it names beside; `examples/` has small programs that add a system, a host, a seed
//! module, a controller, a policy network and a reward term.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
// Both panic where nobody reads: see `cli::output`.
#![warn(clippy::print_stderr, clippy::print_stdout)]
// Nothing that users, files or devices bring about may end in a panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used))]

pub use prior_art::PriorArtPlugin;
pub use simic_core::{choice, section};
#[doc(inline)]
pub use simic_core::{extend, prelude};
// What the rooms below name.
use simic_core::{
    actions, checkpoint, clock, controller, data, engine, env, growth, health, host, learner, policy, random, record,
    renamed, reward, run, scenario, schedule, schema, seed, storage, telemetry, torch, unfinished, validation,
};

#[doc(hidden)]
pub mod prior_art;
#[doc(hidden)]
pub mod compare;
#[doc(hidden)]
pub mod sweep;
#[doc(hidden)]
pub mod eval;
#[doc(hidden)]
pub mod report;
#[doc(hidden)]
pub mod inspect;
pub mod cli;

/// The rooms of all crates, for tests and benchmarks of their insides: may change with every version.
#[doc(hidden)]
pub mod internals {
    pub use simic_core::{
        actions, checkpoint, clock, controller, data, engine, env, faults, governor, growth, health, host, kernels,
        learner, nn, policy, random, record, reward, run, scenario, schedule, schema, seed, storage, telemetry, torch,
        training, unfinished, validation,
    };

    pub use crate::{compare, eval, inspect, prior_art, report, sweep};
}

/// What README and guide show in Rust, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/guide/src/your-host.md")]
#[doc = include_str!("../docs/guide/src/extensions.md")]
struct Pages;
