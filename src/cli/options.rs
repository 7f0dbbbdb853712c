//! Subcommands and flags.

mod compare;
mod data;
mod inspect;
mod sweep;
mod traj;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::checkpoint::CheckpointName;
use crate::grow::{Budget, Keep};
use crate::scenario::Override;
use crate::telemetry::sinks::{ColorChoice, ProgressStyle};
use crate::torch;
use inspect::{CHECK_EXAMPLES, DIFF_EXAMPLES};
use traj::TRAJ_EXAMPLES;

pub use compare::CompareOptions;
pub use data::{ArrayOptions, CheckOptions, DataCommand};
pub use inspect::{CheckRunOptions, DiffOptions};
pub use sweep::{Begun, Pace, PlayOptions, SweepCommand, SweepOptions};
pub use traj::{SetOptions, TrajCommand};

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
  simic-engine run my.ron --rounds 3      a scenario of your own
  simic-engine runs                       what was run, and how far it came
  simic-engine show latest                the summary of the newest run again
  simic-engine <COMMAND> --help           more, with examples
  source <(COMPLETE=bash simic-engine)    completes commands, runs and fields; or zsh, fish

Exit codes:
  0         done
  1         reward-audit: the reward can be exploited; diff: the runs differ;
            check: damaged, but it can be resumed
  2         wrong usage, a scenario or data with problems, or a start-up that failed
  3         failed while running, or standard output could not be written
  4         the engine stopped training: the policy diverged
  5         trained, but the record is incomplete
  6         check: it cannot be resumed, but eval, replay or compare can use it
  7         check: unusable
  8         stopped because of an anomaly (run.on_anomaly)
  101, 134  the program itself failed (panic, abort): please report it
  129       stopped by SIGHUP
  130, 143  stopped by Ctrl-C (SIGINT) or SIGTERM";
const RUN_EXAMPLES: &str = "\
Examples:
  simic-engine run scenarios/quickstart.ron
  simic-engine run my.ron --seed 8 --rounds 3 --tag first
  simic-engine run my.ron --set task.batch_size=64 --set policy.controller=heuristic
  simic-engine run my.ron --dry-run       the scenario with all defaults; nothing is run
  simic-engine run - < my.ron             from standard input";
const LEARN_EXAMPLES: &str = "\
Examples:
  simic-engine learn clone.ron
  simic-engine learn clone.ron --rounds 40 --seed 8
  simic-engine resume latest              it is a run like any other
  simic-engine eval latest --against wait

A round is an update. `simic-engine explain learner.algorithm` lists what is learnt from, and how.";
const RESUME_EXAMPLES: &str = "\
Examples:
  simic-engine resume latest
  simic-engine resume latest --extend 5   five rounds more
  simic-engine resume 20260131-1200       any beginning of a name that no other run has
  simic-engine resume latest --from 40    back to the checkpoint after 40 rounds";
const EVAL_EXAMPLES: &str = "\
Examples:
  simic-engine eval latest
  simic-engine eval latest --seed 1,2,3 --episodes 40 --against heuristic,wait
  simic-engine eval latest --against wait,widened,from_scratch,schedules
  simic-engine eval my-policy --scenario my.ron

Ctrl-C prints the results so far.";
const SWEEP_EXAMPLES: &str = "\
Examples:
  simic-engine sweep scenarios/sweeps/quick.ron
  simic-engine sweep scenarios/sweeps/quick.ron --dry-run
  simic-engine sweep status quick
  simic-engine sweep work quick --shard 2/8

All state of a sweep is in its folder, runs/sweeps/NAME: after a kill, the same command resumes it.";
const COMPARE_EXAMPLES: &str = "\
Examples:
  simic-engine compare quick --by policy.controller
  simic-engine compare quick --metric test_accuracy --csv tables
  simic-engine compare 20260102-0304 20260102-0305 --json";
const RUNS_EXAMPLES: &str = "\
Examples:
  simic-engine runs
  simic-engine runs --tag first --json
  simic-engine runs --out sweeps/lr/trials

States: starting, running, stopping, completed, interrupted (stopped as asked), failed,
stale (recorded as running, but its process is gone: resume it), unreadable.";
const SHOW_EXAMPLES: &str = "\
Examples:
  simic-engine show latest
  simic-engine show 20260131-1200 --json";
const REPORT_EXAMPLES: &str = "\
Examples:
  simic-engine report latest                       report.html, which opens anywhere without a network
  simic-engine report latest --follow              written again and again while the run plays
  simic-engine report latest --http                at http://127.0.0.1:7860, up to date
  simic-engine report quick -o quick.html          of a sweep; eval and compare have --report";
const WATCH_EXAMPLES: &str = "\
Examples:
  simic-engine watch                      the newest run; ? lists the keys
  simic-engine watch 20260131-1200
  simic-engine run my.ron --progress tui  the same view of the run that this process plays";
const EXPORT_EXAMPLES: &str = "\
Examples:
  simic-engine export latest -o grown/                        the best network that the newest run has kept
  simic-engine export latest --round 8 --env 7 -o grown/
  simic-engine export runs/mine/networks/round8-env7.safetensors -o grown/
  cd grown && python -c 'import network; print(network.load())'
  simic-engine export latest --policy -o policy/              what decides, for VectorEnv of the Python package

The folder needs nothing but torch: network.py with network.safetensors, what is known of it in card.md and card.json, and
kept.safetensors, the engine's own file.";
const EXPORT_TABLES_EXAMPLES: &str = "\
Examples:
  simic-engine export-tables latest -o tables
  simic-engine export-tables runs/sweeps/quick -o tables
  python -c \"import pandas; print(pandas.read_parquet('tables/rounds.parquet'))\"

Of a run: rounds, steps, seed_steps, seeds, decisions, updates and episodes; of a sweep: trials.
What their columns are: docs/reference/tables.md. Tables of an earlier export are replaced.";
const VALIDATE_EXAMPLES: &str = "\
Examples:
  simic-engine validate my.ron
  simic-engine validate scenarios/*.ron --no-data
  simic-engine validate my.ron --json";
const REWARD_AUDIT_EXAMPLES: &str = "\
Examples:
  simic-engine reward-audit my.ron
  simic-engine reward-audit my.ron --set reward.regression_penalty_scale=0.5
  simic-engine reward-audit my.ron --json

Exit code 1: the reward can be exploited; standard error names the first strategy that shows it.";
const SERVE_EXAMPLES: &str = "\
Examples:
  simic-engine serve-envs                 the built-in quickstart; not by hand: a program speaks at both ends
  simic-engine serve-envs my.ron --set run.n_envs=16 --seed 7

simic_engine.VectorEnv, of the Python package, is such a program: it starts this command itself.
docs/reference/serve_envs.md says what the frames are. Exit code 143: standard input was closed.";
const INIT_EXAMPLES: &str = "\
Examples:
  simic-engine init photos/ > photos.ron               class folders of PNG, JPEG, WebP, BMP and GIF files
  simic-engine run photos.ron
  simic-engine init images.npy labels.npy --layout nhwc > arrays.ron
  simic-engine init story.txt > story.ron";
const DATA_EXAMPLES: &str = "\
Examples:
  simic-engine data check cifar-10-binary.tar.gz
  simic-engine data check data/mnist
  simic-engine data check photos/ --json";
const LIST_EXAMPLES: &str = "\
Examples:
  simic-engine list tasks
  simic-engine list data                  forms of task.data, and the tasks that use them
  simic-engine list blueprints --json";
const EXPLAIN_EXAMPLES: &str = "\
Examples:
  simic-engine explain                    the sections
  simic-engine explain run                the fields of one
  simic-engine explain run.n_envs         what a field means, its range and default
  simic-engine explain sweep              the fields of a sweep file";
const GROW_EXAMPLES: &str = "\
Examples:
  simic-engine grow --data photos/ --host resnet20 --budget 2x -o grown/
  simic-engine grow --data photos/ --weights mine.safetensors --freeze -o grown/
  simic-engine grow --scenario my.ron --budget 120k --tries 8 --rates 0.01,0.03,0.1 -o grown/

All rows have as many networks of as much compute each, chosen by validation and compared on the test part. What has been played is
kept: after Ctrl-C or a kill, the same command continues.";
const NEW_EXAMPLES: &str = "\
Examples:
  simic-engine new mycrate && cd mycrate && cargo run -- run scenario.ron
  simic-engine new mycrate --engine ../simic-engine";

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Of every command")]
pub struct GlobalOptions {
    /// Print only errors and results.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more of the log, and a line an event; twice for everything.
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
    /// Worker threads; all cores if left out.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// End at once when standard input does: with the process that holds its other end.
    #[arg(long, global = true, hide = true)]
    pub ends_with_input: bool,
    /// End at once when this file is there: another process plays what this one does.
    #[arg(long, global = true, hide = true, value_name = "FILE")]
    pub ends_at: Option<PathBuf>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Train what a scenario describes.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunOptions>),
    /// Train a policy on recorded trajectories: a run without envs, as the scenario's learner.algorithm says.
    #[command(after_help = LEARN_EXAMPLES)]
    Learn(Box<RunOptions>),
    /// Resume a run that was stopped or killed, from its newest checkpoint.
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(ResumeOptions),
    /// List runs: how far they came, what they reached.
    #[command(after_help = RUNS_EXAMPLES)]
    Runs(RunsOptions),
    /// Print the summary of a run again; of one that has not ended, what there is so far.
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowOptions),
    /// Write a run or a sweep as one HTML file: what grew where, when, worth what, and why the rest was pruned.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportOptions),
    /// Show a run in the terminal, live or as a replay.
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchOptions),
    /// Write a grown network, or the policy that grew it, as plain PyTorch.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportOptions),
    /// Write what a run or a sweep has recorded as Parquet tables, for pandas, polars or DuckDB.
    #[command(after_help = EXPORT_TABLES_EXAMPLES)]
    ExportTables(ExportTablesOptions),
    /// Verify a run or a sweep: hashes, checkpoints, events, tables; and say what it can be used for.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckRunOptions),
    /// Name the first field in which two runs differ: scenario, events, checkpoints.
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(DiffOptions),
    /// Play a run's policy as it is against baselines, on the same episodes.
    #[command(after_help = EVAL_EXAMPLES)]
    Eval(Box<EvalOptions>),
    /// Compare methods over the trainings of runs and sweeps: is one better than the other, and by how much?
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Box<CompareOptions>),
    /// Run many trainings of one scenario, with different settings and seeds, on this machine or many.
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(Box<SweepOptions>),
    /// Check scenarios, their data and devices, and sweep files, without running anything.
    #[command(after_help = VALIDATE_EXAMPLES)]
    Validate {
        /// Scenario and sweep files; - is standard input.
        #[arg(required = true, value_name = "FILE")]
        scenarios: Vec<PathBuf>,
        /// Look neither at data nor for devices: for a machine that has none of them.
        #[arg(long)]
        no_data: bool,
    },
    /// Play scripted exploiters against the reward of a scenario: does it pay for anything but growth?
    #[command(after_help = REWARD_AUDIT_EXAMPLES)]
    RewardAudit {
        /// Scenario file; - is standard input.
        scenario: PathBuf,
        /// Set a field; may be given often.
        #[arg(long = "set", value_name = "PATH=VALUE")]
        sets: Vec<String>,
    },
    /// Let another program decide, over standard input and output: the envs of a scenario for reinforcement learning.
    #[command(after_help = SERVE_EXAMPLES)]
    ServeEnvs(ServeOptions),
    /// Print a scenario that grows a network on your own data.
    #[command(after_help = INIT_EXAMPLES)]
    Init(CheckOptions),
    /// Look at data sets on disk.
    #[command(after_help = DATA_EXAMPLES)]
    Data {
        #[command(subcommand)]
        command: DataCommand,
    },
    /// Look at recorded trajectories, data to learn from without playing.
    #[command(after_help = TRAJ_EXAMPLES)]
    Traj {
        #[command(subcommand)]
        command: TrajCommand,
    },
    /// List what this build knows.
    #[command(after_help = LIST_EXAMPLES)]
    List {
        /// tasks, data, hosts, blueprints, rewards, controllers, networks, presets, events or plugins.
        #[arg(value_enum, hide_possible_values = true)]
        what: ListWhat,
    },
    /// Explain one field of a scenario or a sweep file, or list the fields of a section.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain {
        /// Dotted path, e.g. run.n_envs; the sections if left out.
        path: Option<String>,
    },
    /// Grow a network on your data within a budget, and compare it with what else the compute could have been spent on.
    #[command(after_help = GROW_EXAMPLES)]
    Grow(Box<GrowOptions>),
    /// Write a crate of your own: a program with this command line and a system and a seed module of yours.
    #[command(after_help = NEW_EXAMPLES)]
    New(NewOptions),
}

#[derive(Clone, Debug, Args)]
pub struct ExportOptions {
    /// The run's folder, its name or the beginning of it, or latest; or a network that was kept, a .safetensors file; with
    /// --policy also the folder of a saved policy.
    #[arg(value_name = "RUN|FILE")]
    pub from: PathBuf,
    /// Folder to write: a new one, or an earlier export.
    #[arg(short = 'o', long, value_name = "DIR")]
    pub to: PathBuf,
    /// The network of this env, from 0 [default: the best of all].
    #[arg(long, value_name = "ENV")]
    pub env: Option<u32>,
    /// The network of this round, from 1 [default: the best of all].
    #[arg(long, value_name = "ROUND", value_parser = clap::value_parser!(u32).range(1..))]
    pub round: Option<u32>,
    /// The policy that decided, in place of a network.
    #[arg(long, conflicts_with_all = ["env", "round"])]
    pub policy: bool,
    /// Remove all that the folder holds.
    #[arg(long)]
    pub force: bool,
    /// Folder in which the run is looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
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
    /// The engine that it is built on: a folder with its sources, or the URL of a git repository [default: what this program
    /// was built from].
    #[arg(long, value_name = "PATH|URL")]
    pub engine: Option<String>,
}

#[derive(Clone, Debug, Default, Args)]
pub struct RunOptions {
    /// Scenario or sweep file, - for standard input; the built-in quickstart if left out.
    pub scenario: Option<PathBuf>,
    /// Set a field, e.g. run.rounds=3; may be given often.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Folder of runs [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Name of the run's own folder, which must not be there yet [default: time, name and hash].
    #[arg(long, value_name = "ID", value_parser = run_id, hide = true)]
    pub id: Option<String>,
    /// Folder in which relative paths of the scenario start [default: the scenario's].
    #[arg(long, value_name = "DIR", hide = true)]
    pub relative_to: Option<PathBuf>,
    /// Stop after this many rounds; `resume` continues.
    #[arg(long, value_name = "ROUND", value_parser = clap::value_parser!(u32).range(1..))]
    pub until: Option<u32>,
    /// Same as --set name=…
    #[arg(long)]
    pub name: Option<String>,
    /// Same as --set run.seed=…
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,
    /// Same as --set run.rounds=…
    #[arg(long, value_name = "N")]
    pub rounds: Option<String>,
    /// Same as --set run.n_envs=…
    #[arg(long, value_name = "N")]
    pub envs: Option<String>,
    /// Same as --set run.max_steps=…
    #[arg(long, value_name = "N")]
    pub steps: Option<String>,
    /// Device of envs and policy; auto: cuda:0 or cpu.
    #[arg(long, value_name = "auto|cpu|cuda:N")]
    pub device: Option<String>,
    /// Several devices, over which the envs are spread.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub devices: Vec<String>,
    /// Same as --set training.amp=…
    #[arg(long, value_name = "off|auto|bf16|fp16")]
    pub amp: Option<String>,
    /// Same as --set telemetry.level=…
    #[arg(long, value_name = "off|lifecycle|full|debug")]
    pub level: Option<String>,
    /// auto, bar, plain, json or none.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "HOW")]
    pub progress: ProgressStyle,
    /// Say what would be run, and stop.
    #[arg(long)]
    pub dry_run: bool,
    /// A word that `runs --tag` finds; may be given often.
    #[arg(long = "tag", value_name = "WORD")]
    pub tags: Vec<String>,
    /// Keep the names of computer and user in the manifest.
    #[arg(long)]
    pub identify: bool,
}

#[derive(Clone, Debug, Args)]
pub struct GrowOptions {
    /// Images in folders or arrays, or a text, as `data check` reads them.
    #[arg(
        long,
        value_name = "PATH",
        required_unless_present = "scenario",
        conflicts_with = "scenario"
    )]
    pub data: Option<PathBuf>,
    /// Labels, where they are in a file of their own.
    #[arg(long, value_name = "FILE", requires = "data")]
    pub labels: Option<PathBuf>,
    #[command(flatten)]
    pub arrays: ArrayOptions,
    /// A scenario whose task is taken, in place of --data.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["layout", "scale"])]
    pub scenario: Option<PathBuf>,
    /// A family (cnn, resnet, vgg), a known host, or RON [default: the task's].
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// A trained network to begin with: weights of the host, or a kept network.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// How pixels are read, which weights ask for: imagenet, 0..1, means and deviations M,S, or a card.json or kept network.
    #[arg(long, value_name = "HOW")]
    pub normalise: Option<String>,
    /// The trained network stays as it is: seeds alone learn.
    #[arg(long, requires = "weights")]
    pub freeze: bool,
    /// The most that it may have: 2x, 120k or 1.5M parameters, or multiply-accumulates, e.g. 2xmacs.
    #[arg(long, value_name = "AMOUNT", default_value = "2x")]
    pub budget: Budget,
    /// Folder of a saved policy that decides what grows, not blind schedules.
    #[arg(long, value_name = "DIR")]
    pub policy: Option<PathBuf>,
    /// Networks of a planting; others have as many as all of them.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub tries: u16,
    /// Steps of the grown network; others by compute [default: the task's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub steps: Option<u32>,
    /// Learning rates, of which each row takes the one that is best on validation [default: the task's].
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub rates: Vec<f64>,
    /// Same as --set run.seed=…
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Data that the given network was trained on: what it still reads of them.
    #[arg(long, value_name = "PATH")]
    pub old: Option<PathBuf>,
    /// Set a field of the scenario; may be given often.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Which network is written: the best, or the grown one.
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "best|grown"
    )]
    pub keep: Keep,
    /// Folder for the result; what is played until then is kept there.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Begin again: all that the folder holds is removed.
    #[arg(long)]
    pub force: bool,
}

#[derive(Clone, Debug, Args)]
pub struct ServeOptions {
    /// Scenario file; the built-in quickstart if left out.
    pub scenario: Option<PathBuf>,
    /// Set a field, e.g. run.n_envs=16; may be given often.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Same as --set run.seed=…
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,
}

#[derive(Clone, Debug, Default, Args)]
pub struct ResumeOptions {
    /// Folder or name of a sweep; or the run's folder, its name or the beginning of it, or latest.
    pub run: PathBuf,
    /// Checkpoint to resume from: last, best, or the number of rounds played by then; what was recorded after it is
    /// moved aside.
    #[arg(long, value_name = "last|best|ROUND", default_value = "last")]
    pub from: CheckpointName,
    /// Play this many rounds more than the run was to have.
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub extend: Option<u32>,
    /// Stop once this many rounds of the run are played.
    #[arg(long, value_name = "ROUND", value_parser = clap::value_parser!(u32).range(1..))]
    pub until: Option<u32>,
    /// Change a field. run.rounds, run.stop_at, when checkpoints are written and run.keep_last may change as they are; others
    /// need --allow.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// A field, or a section of fields, that may change in the course of the run, or data.hash: the data themselves; may be
    /// given often.
    #[arg(long = "allow", value_name = "PATH")]
    pub allowed: Vec<String>,
    /// Folder in which the run is looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// auto, bar, plain, json or none.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "HOW")]
    pub progress: ProgressStyle,
}

impl ResumeOptions {
    /// All overrides of the command line, for a run that was to have `rounds`.
    ///
    /// # Errors
    /// A `--set` without `=`; more rounds than can be counted.
    pub fn overrides(&self, rounds: u32) -> Result<Vec<Override>, String> {
        let extended = self.extend.iter().map(|more| {
            let rounds = rounds
                .checked_add(*more)
                .ok_or_else(|| format!("--extend {more}: the run has {rounds} rounds; more cannot be counted"))?;
            let shown = format!("--extend {more}");
            Ok(Override::argument(shown, "run.rounds", rounds.to_string()))
        });
        extended
            .chain(self.sets.iter().map(|assignment| Override::parse(assignment)))
            .collect()
    }
}

#[derive(Clone, Debug, Args)]
pub struct RunsOptions {
    /// Only runs with this tag; with all of them if given often.
    #[arg(long = "tag", value_name = "WORD")]
    pub tags: Vec<String>,
    /// Folder of the runs [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct ShowOptions {
    /// Folder or name of a sweep; or the run's folder, its name or the beginning of it, or latest.
    pub run: PathBuf,
    /// Folder in which the run is looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct WatchOptions {
    /// The run's folder, its name or the beginning of it, or latest.
    #[arg(default_value = "latest")]
    pub run: PathBuf,
    /// Folder in which the run is looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct ReportOptions {
    /// Folder or name of a sweep; or the run's folder, its name or the beginning of it, or latest.
    pub run: Option<PathBuf>,
    /// The file to write [default: report.html]; what is there is replaced.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write it again and again while the run plays, until it ends.
    #[arg(long)]
    pub follow: bool,
    /// Write nothing and show it to browsers on this machine, up to date, until Ctrl-C; without a run, the list of all.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:7860")]
    pub http: Option<SocketAddr>,
    /// Folder in which the run is looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct ExportTablesOptions {
    /// Folder or name of a sweep; or the run's folder, its name or the beginning of it, or latest.
    pub run: PathBuf,
    /// Folder for the tables; it is made if it is not there.
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub output: PathBuf,
    /// Folder in which the run is looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

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
    /// What to compare the policy with, or none [default: heuristic,random,wait,blind]: a controller; blind: its usual decisions
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

impl RunOptions {
    /// All overrides of the command line. Their values are checked with the scenario's, so that every problem is
    /// reported at once.
    ///
    /// # Errors
    /// A `--set` without `=`.
    pub fn overrides(&self) -> Result<Vec<Override>, String> {
        let flags = [
            ("--name", "name", &self.name),
            ("--seed", "run.seed", &self.seed),
            ("--rounds", "run.rounds", &self.rounds),
            ("--envs", "run.n_envs", &self.envs),
            ("--steps", "run.max_steps", &self.steps),
            ("--amp", "training.amp", &self.amp),
            ("--level", "telemetry.level", &self.level),
        ];
        let flags = flags.into_iter().filter_map(|(flag, path, value)| {
            let value = value.as_ref()?;
            Some(Override::flag(flag, path, value))
        });
        let device = self.device.as_ref().map(|device| {
            let name = if device == "auto" { automatic_device() } else { device };
            devices(format!("--device {device}"), &[name])
        });
        let several = (!self.devices.is_empty()).then(|| {
            let names: Vec<&str> = self.devices.iter().map(String::as_str).collect();
            devices(format!("--devices {}", self.devices.join(",")), &names)
        });
        let sets = self.sets.iter().map(|assignment| Override::parse(assignment));
        let sets = sets.collect::<Result<Vec<_>, _>>()?;
        // One device is the policy's as well, unless another is asked for.
        let nowhere_else = |device: &Override| Override::argument(device.shown.clone(), "policy.device", "None".into());
        let policy = device.as_ref().map(nowhere_else);
        let policy = policy.filter(|policy| !sets.iter().any(|set| set.overlaps(policy)));
        let devices = device.into_iter().chain(several).chain(policy);
        Ok(flags.chain(devices).chain(sets).collect())
    }
}

/// What one of these names stands for.
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

/// A name that can be a folder's.
fn run_id(text: &str) -> Result<String, String> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let is_name = text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.chars().all(is_part);
    (is_name && text.len() <= 64)
        .then(|| text.to_owned())
        .ok_or_else(|| "valid: 1 to 64 letters, digits, `.`, `_` or `-`, beginning with a letter or digit".into())
}

/// Sets `run.devices`; `shown` is what the user typed.
fn devices(shown: String, names: &[&str]) -> Override {
    Override::argument(shown, "run.devices", format!("{names:?}"))
}

/// The first CUDA device, where libtorch can use one.
fn automatic_device() -> &'static str {
    match torch::load_cuda(&[0], false) {
        Ok(()) => "cuda:0",
        Err(_) => "cpu",
    }
}
