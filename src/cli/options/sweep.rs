//! Of `sweep`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::sweep::Shard;

/// `sweep FILE`, or one of its subcommands.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SweepOptions {
    #[command(subcommand)]
    pub command: Option<SweepCommand>,
    #[command(flatten)]
    pub play: PlayOptions,
}

#[derive(Clone, Debug, Args)]
pub struct PlayOptions {
    /// Sweep file.
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// Check the file and every trial, say what would be played, and stop.
    #[arg(long)]
    pub dry_run: bool,
    /// The sweep was begun with another file: add its trials, or change its budget; what has been played stays.
    #[arg(long)]
    pub extend: bool,
    /// Make the folder of the sweep and play nothing: `sweep work` does, on any machine.
    #[arg(long)]
    pub plan_only: bool,
    #[command(flatten)]
    pub pace: Pace,
    /// Folder of all runs, in which sweeps/NAME is the sweep's own [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct Pace {
    /// Trials at once, in place of the file's budget.parallel.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub parallel: Option<u16>,
}

/// A sweep that has been begun.
#[derive(Clone, Debug, Args)]
pub struct Begun {
    /// Folder or name of the sweep.
    pub sweep: PathBuf,
    /// Folder of all runs [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum SweepCommand {
    /// Say where a sweep stands.
    Status {
        #[command(flatten)]
        begun: Begun,
        /// List every trial.
        #[arg(long)]
        all: bool,
    },
    /// Play trials of a sweep that nobody plays, until none is left; any number of workers may, on any machines that see
    /// the folder.
    Work {
        #[command(flatten)]
        begun: Begun,
        /// Begin with this part of the trials: 2/8 is the second of eight; then help with the rest.
        #[arg(long, value_name = "I/N", default_value = "1/1")]
        shard: Shard,
        /// Play only this trial.
        #[arg(long, value_name = "ID")]
        trial: Option<String>,
        /// End when nothing is free, instead of waiting for trials whose workers may be lost.
        #[arg(long)]
        leave: bool,
        #[command(flatten)]
        pace: Pace,
    },
    /// Write trials.csv, curves.csv and sweep.json of what has ended so far.
    Collect {
        #[command(flatten)]
        begun: Begun,
    },
    /// Let trials that have failed for good be tried again.
    Retry {
        #[command(flatten)]
        begun: Begun,
        /// Their ids; all that have failed if left out.
        trials: Vec<String>,
    },
}
