//! The engine of [simic-engine](../simic_engine/index.html): everything from data to checkpoints, for networks that grow while
//! they train.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![warn(clippy::print_stderr, clippy::print_stdout)]
// No action of a user, file or device may end in a panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used))]

pub use simic_scenario::{choice, clock, files, growth, health, random, scenario, schema, section, storage};
pub use simic_torch::{kernels, nn, torch};

#[cfg(test)]
mod fixtures;
pub mod schedule;
pub mod unfinished;
pub mod hash;
pub mod threads;
pub mod graph;
pub mod host;
pub mod data;
pub mod seed;
pub mod network;
pub mod telemetry;
pub mod env;
pub mod training;
pub mod validation;
pub mod governor;
pub mod faults;
pub mod actions;
pub mod policy;
pub mod controller;
pub mod reward;
pub mod trajectory;
pub mod learner;
pub mod run;
pub mod record;
pub mod keep;
pub mod checkpoint;
pub mod engine;
pub mod prelude;
pub mod extend;
