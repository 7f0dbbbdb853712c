//! The engine as a library: runs played in this process, in memory or recorded, and watched by systems that tests add.

mod action_space;
mod anomalies;
mod checkpoints;
mod coalitions;
mod commands;
mod custom_data;
mod custom_names;
mod decisions;
mod devices;
mod early_stop;
mod failures;
mod governor;
mod hosts;
mod import;
mod interruptions;
mod keep;
mod inside_rounds;
mod language;
mod phases;
mod prior_art;
mod recorded;
mod regression_bands;
mod residency;
mod resolved;
mod rewards;
mod rollouts;
mod run_record;
mod scenario_errors;
#[path = "../support/mod.rs"]
mod support;
mod training_loop;
#[path = "../exported/main.rs"]
mod exported;
#[path = "../fuzz/main.rs"]
mod fuzz;
