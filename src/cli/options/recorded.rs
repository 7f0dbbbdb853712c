//! Commands about records: `runs`, `show`, `report`, `watch`, `check`, `diff`, `traj`, `export` and `export-tables`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::inspect::{DiffKind, Extent};

pub const RUNS_EXAMPLES: &str = "\
Examples:
  simic-engine runs
  simic-engine runs --tag first --json
  simic-engine runs --out sweeps/lr/trials

States: starting, running, stopping, completed, interrupted (stopped as asked), failed,
stale (recorded as running, but its process is gone: resume it), unreadable.";
pub const SHOW_EXAMPLES: &str = "\
Examples:
  simic-engine show latest
  simic-engine show 20260131-1200 --json";
pub const REPORT_EXAMPLES: &str = "\
Examples:
  simic-engine report latest                       report.html, which opens anywhere offline
  simic-engine report latest --follow              updated while the run plays
  simic-engine report latest --http                at http://127.0.0.1:7860, always up to date
  simic-engine report quick -o quick.html          for a sweep; eval and compare have --report";
pub const WATCH_EXAMPLES: &str = "\
Examples:
  simic-engine watch                      the newest run; ? lists the keys
  simic-engine watch 20260131-1200
  simic-engine run my.ron --progress tui  the same view of the run that this process plays";

#[derive(Clone, Debug, Args)]
pub struct RunsOptions {
    /// Only runs with this tag; if repeated, only runs with all tags.
    #[arg(long = "tag", value_name = "WORD")]
    pub tags: Vec<String>,
    /// Folder of the runs [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct ShowOptions {
    /// Folder or name of a sweep; or a run's folder, its name or the beginning of it, or latest.
    pub run: PathBuf,
    /// Folder that contains the run [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct ReportOptions {
    /// Folder or name of a sweep; or a run's folder, its name or the beginning of it, or latest.
    pub run: Option<PathBuf>,
    /// File to write; an existing file is replaced [default: report.html].
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Update the file while the run plays, until it ends.
    #[arg(long)]
    pub follow: bool,
    /// Serve the report to browsers on this machine, always up to date, until Ctrl-C, and write no file; without a run, list all
    /// runs.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:7860")]
    pub http: Option<SocketAddr>,
    /// Folder that contains the run [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct WatchOptions {
    /// Run: its folder, its name or the beginning of it, or latest.
    #[arg(default_value = "latest")]
    pub run: PathBuf,
    /// Folder that contains the run [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

pub const CHECK_EXAMPLES: &str = "\
Examples:
  simic-engine check latest
  simic-engine check runs/sweeps/quick    a sweep and all of its trials
  simic-engine check 20260131-1200 --json

Nothing is changed, so you can check a run while it plays. Exit codes:
  0  no damage
  1  damaged, but it can be resumed
  6  it can't be resumed, but can be used for what is printed
  7  unusable";
pub const DIFF_EXAMPLES: &str = "\
Examples:
  simic-engine diff 20260131-1200 latest
  simic-engine diff runs/a runs/b --all=3 --only events,checkpoints
  simic-engine diff runs/a runs/b --json

`diff` leaves out clocks, sizes and numbers of events. Exit codes:
  0  no difference
  1  they differ
  2  they can't be compared";

#[derive(Clone, Debug, Args)]
pub struct CheckRunOptions {
    /// Run or sweep: its folder or name, the beginning of a run's name, or latest.
    pub folder: PathBuf,
    /// Folder that contains it [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct DiffOptions {
    /// Run: its folder, its name or the beginning of it, or latest.
    pub left: PathBuf,
    /// The other run.
    pub right: PathBuf,
    /// Print the first N differences of every kind, 10 if N is left out, instead of the first of all.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10", require_equals = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub all: Option<u32>,
    /// Compare only these: scenario, events, checkpoints.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "A,B"
    )]
    pub only: Vec<DiffKind>,
    /// Folder that contains the runs [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl DiffOptions {
    pub fn kinds(&self) -> Vec<DiffKind> {
        match &self.only[..] {
            [] => DiffKind::ALL.to_vec(),
            only => only.to_vec(),
        }
    }

    pub fn extent(&self) -> Extent {
        self.all.map_or(Extent::First, |limit| Extent::OfEvery(limit as usize))
    }
}

pub const TRAJ_EXAMPLES: &str = "\
Examples:
  simic-engine run my.ron --set run.trajectories=true
  simic-engine traj info latest           what the newest run has recorded
  simic-engine traj check a.traj b.traj   are they intact, and can they be learnt from together?

docs/reference/trajectories.md describes the files. The Python package reads them.";

#[derive(Clone, Debug, Subcommand)]
pub enum TrajCommand {
    /// Describe a set of trajectories.
    Info {
        /// Folder of a set; or a run's folder, its name or the beginning of it, or latest.
        #[arg(value_name = "SET|RUN")]
        run: PathBuf,
        /// Folder that contains the run [default: $SIMIC_ENGINE_RUNS or runs].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Verify sets: every shard against its checksum and the manifest, and every set against the first.
    Check {
        /// Folders of sets or runs, or names of runs.
        #[arg(required = true, value_name = "SET|RUN")]
        sources: Vec<PathBuf>,
        /// Folder that contains the runs [default: $SIMIC_ENGINE_RUNS or runs].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

pub const EXPORT_EXAMPLES: &str = "\
Examples:
  simic-engine export latest -o grown/                        the best network of the newest run
  simic-engine export latest --round 8 --env 7 -o grown/
  simic-engine export runs/mine/networks/round8-env7.safetensors -o grown/
  cd grown && python -c 'import network; print(network.load())'
  simic-engine export latest --policy -o policy/              the policy, for VectorEnv in Python

The folder needs only torch. It has network.py with network.safetensors, a description in card.md
and card.json, and kept.safetensors, the engine's own file.";
pub const EXPORT_TABLES_EXAMPLES: &str = "\
Examples:
  simic-engine export-tables latest -o tables
  simic-engine export-tables runs/sweeps/quick -o tables
  python -c \"import pandas; print(pandas.read_parquet('tables/rounds.parquet'))\"

A run has the tables rounds, steps, seed_steps, seeds, decisions, updates and episodes, a sweep has
trials. docs/reference/tables.md describes the columns. Tables of an earlier export are replaced.";

#[derive(Clone, Debug, Args)]
pub struct ExportOptions {
    /// Run: its folder, its name or the beginning of it, or latest; or the .safetensors file of a kept network; with --policy
    /// also the folder of a saved policy.
    #[arg(value_name = "RUN|FILE")]
    pub from: PathBuf,
    /// Folder to write: a new one, or an earlier export.
    #[arg(short = 'o', long, value_name = "DIR")]
    pub to: PathBuf,
    /// Export the network of this env, from 0 [default: the best of all].
    #[arg(long, value_name = "ENV")]
    pub env: Option<u32>,
    /// Export the network of this round, from 1 [default: the best of all].
    #[arg(long, value_name = "ROUND", value_parser = clap::value_parser!(u32).range(1..))]
    pub round: Option<u32>,
    /// Export the policy that decided, instead of a network.
    #[arg(long, conflicts_with_all = ["env", "round"])]
    pub policy: bool,
    /// Remove everything in the folder.
    #[arg(long)]
    pub force: bool,
    /// Folder that contains the run [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct ExportTablesOptions {
    /// Folder or name of a sweep; or a run's folder, its name or the beginning of it, or latest.
    pub run: PathBuf,
    /// Folder for the tables; it is created if it doesn't exist.
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub output: PathBuf,
    /// Folder that contains the run [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
