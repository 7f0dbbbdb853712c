//! The tensors of [simic-engine](../simic_engine/index.html): additions to tch, the engine's own kernels, and the layers and
//! optimizers of networks. This is the only crate with `unsafe` code, which calls C++ that `build.rs` compiles.

#![deny(unsafe_code)]
#![warn(missing_docs)]
#![warn(clippy::print_stderr, clippy::print_stdout)]
// An action of a user, file or device must not end in a panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used))]

pub use simic_scenario::{clock, files, growth, health, random, scenario, schema, storage};

#[allow(unsafe_code)]
pub mod torch;
#[allow(unsafe_code)]
pub mod kernels;
pub mod nn;
