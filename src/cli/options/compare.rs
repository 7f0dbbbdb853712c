//! Options of `eval` and `compare`.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::PathBuf;

use clap::Args;

use super::within;
use crate::checkpoint::CheckpointName;
use crate::compare::Metric;
use crate::compare::statistics::{Criteria, DecisionTest};
use crate::schema::FloatRange;

pub const EVAL_EXAMPLES: &str = "\
Examples:
  simic-engine eval latest
  simic-engine eval latest --seed 1,2,3 --episodes 40 --against heuristic,wait
  simic-engine eval latest --against wait,widened,from_scratch,schedules
  simic-engine eval my-policy --scenario my.ron

Ctrl-C prints the results so far.";
pub const COMPARE_EXAMPLES: &str = "\
Examples:
  simic-engine compare quick --by policy.controller
  simic-engine compare quick --metric test_accuracy --csv tables
  simic-engine compare 20260102-0304 20260102-0305 --json";

#[derive(Clone, Debug, Args)]
pub struct EvalOptions {
    /// Run, finished or not: its folder, its name or the beginning of it, or latest; or the folder of a saved policy.
    pub run: PathBuf,
    /// Folder that contains the run [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Scenario to play instead of the run's own; its slots, steps and network must be the policy's.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Checkpoint of the policy: the newest, the one with the best rolling accuracy, or the one after this number of
    /// rounds.
    #[arg(long, value_name = "last|best|ROUND", default_value = "last")]
    pub from: CheckpointName,
    /// Episodes of each controller for each seed, rounded up to whole rounds [default: 2 per env].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub episodes: Option<u32>,
    /// Opponents of the policy, or none: controllers, blind (its usual decisions without observations), widened (a wider
    /// host), from_scratch (the grown networks), schedules (the best of many) [default: heuristic,random,wait,blind].
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub against: Option<Vec<String>>,
    /// Schedules to try [default: as many as cost the compute of the policy's training].
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    pub schedules: Option<u32>,
    /// Also write what --json prints to this file.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Also write the evaluation as one HTML file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Let the policy take its likeliest actions; by default it does both.
    #[arg(long)]
    pub greedy: bool,
    /// Let the policy draw its actions.
    #[arg(long)]
    pub sample: bool,
    /// Seeds to play with [default: the run's].
    #[arg(long = "seed", value_name = "N,M", value_delimiter = ',')]
    pub seeds: Vec<u64>,
    /// Set a field of the scenario, e.g. run.n_envs=4; can be repeated.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub struct CompareOptions {
    /// Runs and sweeps: their folders or names.
    #[arg(required = true, value_name = "RUN|SWEEP")]
    pub sources: Vec<PathBuf>,
    /// Field of the scenario that distinguishes methods; can be repeated [default: all that differ, except seeds].
    #[arg(long = "by", value_name = "PATH")]
    pub by: Vec<String>,
    /// Metric to compare; --list-metrics explains them.
    #[arg(long, value_enum, default_value = "accuracy_minus_rent", hide_possible_values = true)]
    pub metric: Metric,
    /// Print the metrics, and stop.
    #[arg(long, exclusive = true)]
    pub list_metrics: bool,
    /// Statistical test that decides; sign flips compare pairs with equal seeds.
    #[arg(
        long,
        value_enum,
        default_value = "mann-whitney",
        value_name = "mann-whitney|sign-flip",
        hide_possible_values = true
    )]
    pub test: DecisionTest,
    /// Method that the others are compared with [default: all pairs].
    #[arg(long, value_name = "METHOD")]
    pub control: Option<String>,
    /// Probability of a false claim.
    #[arg(long, default_value_t = Criteria::ALPHA, value_parser = within(FloatRange(Excluded(0.0), Excluded(1.0))))]
    pub alpha: f64,
    /// Smallest difference that matters, in the metric's unit [default: 0.01 for losses, 0.5 for all others].
    #[arg(long, value_parser = within(FloatRange(Included(0.0), Unbounded)))]
    pub min_effect: Option<f64>,
    /// Also write scores.csv and differences.csv to this folder.
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Also write the comparison as one HTML file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Folder that contains runs and sweeps [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
