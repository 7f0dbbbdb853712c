//! Of commands about what was recorded: `runs`, `show`, `report`, `watch`, `check`, `diff`, `traj`, `export` and `export-tables`.

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
  simic-engine report latest                       report.html, which also opens offline
  simic-engine report latest --follow              rewritten while the run plays
  simic-engine report latest --http                served at http://127.0.0.1:7860, up to date
  simic-engine report quick -o quick.html          of a sweep; eval and compare have --report";
pub const WATCH_EXAMPLES: &str = "\
Examples:
  simic-engine watch                      the newest run; ? lists the keys
  simic-engine watch 20260131-1200
  simic-engine run my.ron --progress tui  the same view of the run that this process plays";

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
pub struct WatchOptions {
    /// The run's folder, its name or the beginning of it, or latest.
    #[arg(default_value = "latest")]
    pub run: PathBuf,
    /// Folder in which the run is looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

pub const CHECK_EXAMPLES: &str = "\
Examples:
  simic-engine check latest
  simic-engine check runs/sweeps/quick    a sweep and all of its trials
  simic-engine check 20260131-1200 --json

`check` changes nothing, and can check a run while it is played. Exit codes:
  0  no damage
  1  damaged, but it can be resumed
  6  it cannot be resumed, but the output names its other uses
  7  unusable";
pub const DIFF_EXAMPLES: &str = "\
Examples:
  simic-engine diff 20260131-1200 latest
  simic-engine diff runs/a runs/b --all=3 --only events,checkpoints
  simic-engine diff runs/a runs/b --json

`diff` leaves out clocks, sizes and numbers of events. Exit codes:
  0  no difference
  1  they differ
  2  they cannot be compared";

#[derive(Clone, Debug, Args)]
pub struct CheckRunOptions {
    /// A run or a sweep: its folder, its name or the beginning of a run's, or latest.
    pub folder: PathBuf,
    /// Folder in which it is looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct DiffOptions {
    /// A run: its folder, its name or the beginning of it, or latest.
    pub left: PathBuf,
    /// The other one.
    pub right: PathBuf,
    /// The first N differences of every kind; 10 if N is left out. Without it, the first of all.
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
    /// Folder in which the runs are looked for [default: $SIMIC_ENGINE_RUNS or runs].
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
  simic-engine traj check a.traj b.traj   whether a policy can learn from both together

docs/reference/trajectories.md describes the files. The Python package reads them.";

#[derive(Clone, Debug, Subcommand)]
pub enum TrajCommand {
    /// Say what a set of trajectories holds.
    Info {
        /// Folder of a set; or the run's folder, its name or the beginning of it, or latest.
        #[arg(value_name = "SET|RUN")]
        run: PathBuf,
        /// Folder in which the run is looked for [default: $SIMIC_ENGINE_RUNS or runs].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Verify sets: every shard against its checksum and the manifest, and all of them against the first.
    Check {
        /// Folders of sets or runs, or names of runs.
        #[arg(required = true, value_name = "SET|RUN")]
        sources: Vec<PathBuf>,
        /// Folder in which runs are looked for [default: $SIMIC_ENGINE_RUNS or runs].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

pub const EXPORT_EXAMPLES: &str = "\
Examples:
  simic-engine export latest -o grown/                        the newest run's best kept network
  simic-engine export latest --round 8 --env 7 -o grown/
  simic-engine export runs/mine/networks/round8-env7.safetensors -o grown/
  cd grown && python -c 'import network; print(network.load())'
  simic-engine export latest --policy -o policy/              its policy, for VectorEnv in Python

The folder needs only torch. It holds network.py with network.safetensors, card.md and card.json,
which describe the network, and kept.safetensors, the engine's own file.";
pub const EXPORT_TABLES_EXAMPLES: &str = "\
Examples:
  simic-engine export-tables latest -o tables
  simic-engine export-tables runs/sweeps/quick -o tables
  python -c \"import pandas; print(pandas.read_parquet('tables/rounds.parquet'))\"

A run has rounds, steps, seed_steps, seeds, decisions, updates and episodes. A sweep has trials.
docs/reference/tables.md describes the columns. Tables of an earlier export are replaced.";

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
