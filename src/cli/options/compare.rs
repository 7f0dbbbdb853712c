//! Of `eval` and `compare`.

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
    /// A run, finished or not: its folder, its name or the beginning of it, or latest; or the folder of a saved policy.
    pub run: PathBuf,
    /// Folder in which the run is looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Scenario to play instead of the run's own; its slots, steps and network must be those of the policy.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Checkpoint of the policy: the newest, the one with the best rolling accuracy, or the one after this number of
    /// rounds.
    #[arg(long, value_name = "last|best|ROUND", default_value = "last")]
    pub from: CheckpointName,
    /// Episodes of each controller under each seed, rounded up to whole rounds [default: 2 for every env].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub episodes: Option<u32>,
    /// Opponents of the policy, or none [default: heuristic,random,wait,blind]: a controller; blind: its usual decisions
    /// without looking; widened: a wider host; from_scratch: the grown networks; schedules: the best of many.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub against: Option<Vec<String>>,
    /// Schedules to try [default: as many as the policy's training would have paid for].
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    pub schedules: Option<u32>,
    /// Also write what --json prints to this file.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Write the evaluation as one HTML file as well.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The policy takes its likeliest actions; both ways if neither is asked for.
    #[arg(long)]
    pub greedy: bool,
    /// The policy draws its actions.
    #[arg(long)]
    pub sample: bool,
    /// Play under other seeds than the run's.
    #[arg(long = "seed", value_name = "N,M", value_delimiter = ',')]
    pub seeds: Vec<u64>,
    /// Set a field of the scenario, e.g. run.n_envs=4; may be given often.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub struct CompareOptions {
    /// Runs and sweeps, by folder or name.
    #[arg(required = true, value_name = "RUN|SWEEP")]
    pub sources: Vec<PathBuf>,
    /// Field of the scenario that tells methods apart; may be given often [default: all that differ, but seeds].
    #[arg(long = "by", value_name = "PATH")]
    pub by: Vec<String>,
    /// Metric to compare; --list-metrics explains them.
    #[arg(long, value_enum, default_value = "accuracy_minus_rent", hide_possible_values = true)]
    pub metric: Metric,
    /// Say which metrics there are, and stop.
    #[arg(long, exclusive = true)]
    pub list_metrics: bool,
    /// Test that decides; sign flips compare pairs of equal seeds.
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
    /// Difference that matters, in the metric's unit [default: 0.01 of losses, 0.5 of all others].
    #[arg(long, value_parser = within(FloatRange(Included(0.0), Unbounded)))]
    pub min_effect: Option<f64>,
    /// Write scores.csv and differences.csv into this folder as well.
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Write the comparison as one HTML file as well.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Folder in which runs and sweeps are looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
