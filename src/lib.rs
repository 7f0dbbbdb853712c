//! An ECS simulation engine for morphogenetic training: neural networks that grow while they train.
//!
//! Start with [`schedule`]: it lists every schedule, every public set and every piece of work in order.

pub mod cli;
pub mod controller;
pub mod data;
pub mod env;
pub mod health;
pub mod host;
pub mod random;
pub mod run;
pub mod scenario;
pub mod schedule;
pub mod seed;
pub mod telemetry;
pub mod torch;
pub mod training;
pub mod validation;
