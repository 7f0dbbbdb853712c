//! The vocabulary of [simic-engine](../simic_engine/index.html) and its language: what all crates above name, and how an
//! experiment is written. It knows no tensors.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![warn(clippy::print_stderr, clippy::print_stdout)]
// Nothing that users, files or devices bring about may end in a panic.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used))]

pub mod growth;
pub mod random;
pub mod health;
pub mod files;
pub mod storage;
pub mod clock;
pub mod schema;
pub mod scenario;
