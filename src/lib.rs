//! An ECS simulation engine for morphogenetic training: neural networks that grow while they train.

pub mod cli;
pub mod controller;
pub mod data;
pub mod host;
pub mod random;
pub mod run;
pub mod scenario;
pub mod seed;
pub mod telemetry;
pub mod torch;
pub mod validation;
