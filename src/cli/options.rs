//! Subcommands and flags.

mod compare;
mod data;
mod grow;
mod recorded;
mod run;
mod sweep;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::schema::FloatRange;

pub use compare::{CompareOptions, EvalOptions};
pub use data::{ArrayOptions, CheckOptions, DataCommand};
pub use grow::{AdaptOptions, GrowOptions, NetworkOptions};
pub use recorded::{
    CheckRunOptions, DiffOptions, ExportOptions, ExportTablesOptions, ReportOptions, RunsOptions, ShowOptions,
    TrajCommand, WatchOptions,
};
pub use run::{ProgressStyle, ResumeOptions, RunOptions, ServeOptions};
pub use sweep::{Begun, PlayOptions, SweepCommand, SweepOptions};

/// Trains networks that grow while they train.
#[derive(Clone, Debug, Parser)]
#[command(name = "simic-engine", version, propagate_version = true, max_term_width = 100, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub global: GlobalOptions,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  simic-engine run                        the built-in quickstart, about a minute
  simic-engine run my.ron --rounds 3      your own scenario
  simic-engine runs                       the runs, their progress and results
  simic-engine show latest                the summary of the newest run again
  simic-engine <COMMAND> --help           more about a command, with examples
  source <(COMPLETE=bash simic-engine)    completes commands, runs and fields; or zsh, fish

Exit codes:
  0         done
  1         reward-audit: the reward can be exploited; diff: the runs differ;
            check: damaged, but it can be resumed
  2         wrong usage, a scenario or data with problems, or a failed start-up
  3         failed while running, or standard output could not be written
  4         the engine stopped training: the policy diverged
  5         trained, but the record is incomplete
  6         check: it can't be resumed, but eval, replay or compare can use it
  7         check: unusable
  8         stopped because of an anomaly (run.on_anomaly)
  101, 134  the program itself failed (panic, abort): please report it
  129       stopped by SIGHUP
  130, 143  stopped by Ctrl-C (SIGINT) or SIGTERM";
const VALIDATE_EXAMPLES: &str = "\
Examples:
  simic-engine validate my.ron
  simic-engine validate scenarios/*.ron --no-data
  simic-engine validate my.ron --json";
const REWARD_AUDIT_EXAMPLES: &str = "\
Examples:
  simic-engine reward-audit my.ron
  simic-engine reward-audit my.ron --set reward.rent=0.0
  simic-engine reward-audit my.ron --json

Exit code 1: the reward can be exploited; standard error names the first strategy that shows it.";
const LIST_EXAMPLES: &str = "\
Examples:
  simic-engine list tasks
  simic-engine list data                  forms of task.data, and the tasks that use them
  simic-engine list blueprints --json";
const EXPLAIN_EXAMPLES: &str = "\
Examples:
  simic-engine explain                    the sections
  simic-engine explain run                the fields of a section
  simic-engine explain run.n_envs         the meaning, range and default of a field
  simic-engine explain sweep              the fields of a sweep file";
const NEW_EXAMPLES: &str = "\
Examples:
  simic-engine new mycrate && cd mycrate && cargo run -- run scenario.ron
  simic-engine new mycrate --engine ../simic-engine";

/// Values of --color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// Colours on a terminal unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Colours everywhere.
    Always,
    /// No colours.
    Never,
}

impl ColorChoice {
    /// Returns whether to colour output to a terminal or to something else.
    pub fn is_coloured(self, is_terminal: bool) -> bool {
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match self {
            Self::Auto => is_terminal && !is_refused,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalOptions {
    /// Print only errors and results.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more of the log and every event; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Colours in the output.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "auto|always|never"
    )]
    pub color: ColorChoice,
    /// Print results as one JSON document on standard output.
    #[arg(long, global = true)]
    pub json: bool,
    /// Append the log to this file, not to the run's log.txt.
    #[arg(long, global = true, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// Worker threads [default: all cores].
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// End at once when standard input ends, with the process at its other end.
    #[arg(long, global = true, hide = true)]
    pub ends_with_input: bool,
    /// End at once when this file exists, because another process has taken over.
    #[arg(long, global = true, hide = true, value_name = "FILE")]
    pub ends_at: Option<PathBuf>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run the training that a scenario describes.
    #[command(after_help = run::RUN_EXAMPLES)]
    Run(Box<RunOptions>),
    /// Train a policy on recorded trajectories, without envs, by the scenario's learner.algorithm.
    #[command(after_help = run::LEARN_EXAMPLES)]
    Learn(Box<RunOptions>),
    /// Resume a run that was stopped or killed, from its newest checkpoint.
    #[command(after_help = run::RESUME_EXAMPLES)]
    Resume(ResumeOptions),
    /// List runs with their progress and results.
    #[command(after_help = recorded::RUNS_EXAMPLES)]
    Runs(RunsOptions),
    /// Print the summary of a run again, or its results so far if it hasn't ended.
    #[command(after_help = recorded::SHOW_EXAMPLES)]
    Show(ShowOptions),
    /// Write a run or a sweep as one HTML file: what grew, where and when, what it was worth, and why the rest was pruned.
    #[command(after_help = recorded::REPORT_EXAMPLES)]
    Report(ReportOptions),
    /// Show a run in the terminal, live or as a replay.
    #[command(after_help = recorded::WATCH_EXAMPLES)]
    Watch(WatchOptions),
    /// Write a grown network, or the policy that grew it, as plain PyTorch.
    #[command(after_help = recorded::EXPORT_EXAMPLES)]
    Export(ExportOptions),
    /// Write the record of a run or a sweep as Parquet tables, for pandas, polars or DuckDB.
    #[command(after_help = recorded::EXPORT_TABLES_EXAMPLES)]
    ExportTables(ExportTablesOptions),
    /// Verify hashes, checkpoints, events and tables of a run or a sweep, and say what it can be used for.
    #[command(after_help = recorded::CHECK_EXAMPLES)]
    Check(CheckRunOptions),
    /// Print the first field in which the scenarios, events or checkpoints of two runs differ.
    #[command(after_help = recorded::DIFF_EXAMPLES)]
    Diff(DiffOptions),
    /// Play a run's policy, unchanged, against baselines on the same episodes.
    #[command(after_help = compare::EVAL_EXAMPLES)]
    Eval(Box<EvalOptions>),
    /// Compare methods over the trainings of runs and sweeps: is one better than the other, and by how much?
    #[command(after_help = compare::COMPARE_EXAMPLES)]
    Compare(Box<CompareOptions>),
    /// Run many trainings of one scenario, with different settings and seeds, on one machine or many.
    #[command(after_help = sweep::SWEEP_EXAMPLES)]
    Sweep(Box<SweepOptions>),
    /// Check scenarios, their data and devices, and sweep files, without running anything.
    #[command(after_help = VALIDATE_EXAMPLES)]
    Validate {
        /// Scenario and sweep files; - is standard input.
        #[arg(required = true, value_name = "FILE")]
        scenarios: Vec<PathBuf>,
        /// Skip the checks of data and devices, for a machine without them.
        #[arg(long)]
        no_data: bool,
    },
    /// Play scripted exploiters against the reward of a scenario, to see if it pays for anything but growth.
    #[command(after_help = REWARD_AUDIT_EXAMPLES)]
    RewardAudit {
        /// Scenario file; - is standard input.
        scenario: PathBuf,
        /// Set a field; can be repeated.
        #[arg(long = "set", value_name = "PATH=VALUE")]
        sets: Vec<String>,
    },
    /// Serve the envs of a scenario over standard input and output, for reinforcement learning in another program.
    #[command(after_help = run::SERVE_EXAMPLES)]
    ServeEnvs(ServeOptions),
    /// Print a scenario that grows a network on your own data.
    #[command(after_help = data::INIT_EXAMPLES)]
    Init(CheckOptions),
    /// Inspect data sets on disk.
    #[command(after_help = data::CHECK_EXAMPLES)]
    Data {
        #[command(subcommand)]
        command: DataCommand,
    },
    /// Inspect recorded trajectories, data to learn from without playing.
    #[command(after_help = recorded::TRAJ_EXAMPLES)]
    Traj {
        #[command(subcommand)]
        command: TrajCommand,
    },
    /// List the names that this build knows.
    #[command(after_help = LIST_EXAMPLES)]
    List {
        /// tasks, data, hosts, blueprints, rewards, controllers, networks, presets, events, detectors or plugins.
        #[arg(value_enum, hide_possible_values = true)]
        what: ListWhat,
    },
    /// Explain one field of a scenario or a sweep file, or list the fields of a section.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain {
        /// Dotted path, e.g. run.n_envs; without it, all sections are listed.
        path: Option<String>,
    },
    /// Adapt a trained network to a few images of a new kind, with the given network unchanged inside.
    #[command(after_help = grow::ADAPT_EXAMPLES)]
    Adapt(Box<AdaptOptions>),
    /// Grow a network on your data within a budget, and compare it with other uses of the same compute.
    #[command(after_help = grow::GROW_EXAMPLES)]
    Grow(Box<GrowOptions>),
    /// Create a crate: a program with this command line, a system and a seed module of your own.
    #[command(after_help = NEW_EXAMPLES)]
    New(NewOptions),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListWhat {
    Tasks,
    Data,
    Hosts,
    Blueprints,
    Rewards,
    Controllers,
    Networks,
    Presets,
    Events,
    Detectors,
    Plugins,
}

#[derive(Clone, Debug, Args)]
pub struct NewOptions {
    /// Folder of the crate; its last part is the crate's name.
    pub path: PathBuf,
    /// Engine to build on: a folder with its sources, or the URL of a git repository [default: the source of this program].
    #[arg(long, value_name = "PATH|URL")]
    pub engine: Option<String>,
}

/// Parses one of these names into its value.
fn one_of<T: Clone + Send + Sync + 'static>(known: &'static [(&str, T)]) -> impl TypedValueParser<Value = T> {
    let named = |name: String| {
        known
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.clone())
    };
    let names = PossibleValuesParser::new(known.iter().map(|(name, _)| *name));
    names.try_map(move |name| named(name).ok_or("no such name"))
}

/// A number in a range.
fn within(range: FloatRange) -> impl TypedValueParser<Value = f64> {
    move |text: &str| -> Result<f64, String> {
        let value: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
        let is_valid = range.contains(value);
        is_valid.then_some(value).ok_or_else(|| format!("valid: {range}"))
    }
}
