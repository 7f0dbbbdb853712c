//! The command line as a user meets it: the real binary, what it prints and what it leaves.

#[cfg(unix)]
mod adapt;
mod baselines;
mod check;
#[cfg(unix)]
mod completions;
mod damage;
mod data;
mod determinism;
mod diff;
mod eval;
mod export;
#[cfg(unix)]
mod grow;
mod guide;
mod judged;
mod identity;
mod init;
mod json;
mod learn;
#[cfg(target_os = "linux")]
mod memory;
mod new;
mod opponents;
mod program;
mod progress;
mod report;
mod resume;
mod reward_audit;
mod run;
mod runs;
mod scenarios;
mod serve_envs;
#[cfg(unix)]
mod setup;
#[path = "../support/mod.rs"]
mod support;
mod sweep;
mod tables;
mod traj;
mod usage;
#[cfg(unix)]
mod watch;
