//! Of `runs`, `show`, `report` and `watch`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

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
  simic-engine report latest                       report.html, which opens anywhere without a network
  simic-engine report latest --follow              written again and again while the run plays
  simic-engine report latest --http                at http://127.0.0.1:7860, up to date
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
