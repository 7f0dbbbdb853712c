//! The vocabulary of [simic-engine](../simic_engine/index.html), which all other crates use, and the language in which you write
//! an experiment. This crate doesn't have tensors.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![warn(clippy::print_stderr, clippy::print_stdout)]
// No action of a user, file or device may end in a panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used))]

pub mod growth;
pub mod random;
pub mod health;
pub mod files;
pub mod storage;
pub mod clock;
pub mod schema;
pub mod scenario;
