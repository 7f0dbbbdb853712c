//! Options of `sweep`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::sweep::{Cluster, Shard};

pub const SWEEP_EXAMPLES: &str = "\
Examples:
  simic-engine sweep scenarios/sweeps/quick.ron
  simic-engine sweep scenarios/sweeps/quick.ron --dry-run
  simic-engine sweep status quick
  simic-engine sweep work quick --shard 2/8

All state of a sweep is in its folder, runs/sweeps/NAME. After a kill, the same command resumes it.";

/// `sweep FILE`, or one of its subcommands.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SweepOptions {
    #[command(subcommand)]
    pub command: Option<SweepCommand>,
    #[command(flatten)]
    pub play: PlayOptions,
}

#[derive(Clone, Debug, Default, Args)]
pub struct PlayOptions {
    /// Sweep file.
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// Check every trial, print what would be played, and stop.
    #[arg(long)]
    pub dry_run: bool,
    /// Add trials to a sweep that has started, or change its budget.
    #[arg(long)]
    pub extend: bool,
    /// Create the folder and play nothing; `sweep work` plays the trials.
    #[arg(long)]
    pub plan_only: bool,
    /// Trials at once, instead of the file's budget.parallel.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub parallel: Option<u16>,
    #[command(flatten)]
    pub launch: LaunchOptions,
    /// Folder of runs [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// The program that starts the workers, and their number.
#[derive(Clone, Debug, Default, Args)]
pub struct LaunchOptions {
    /// Let slurm, ray or hyperqueue start the workers; see docs/guide.
    #[arg(
        long,
        value_enum,
        value_name = "ENGINE",
        hide_possible_values = true,
        conflicts_with = "plan_only"
    )]
    pub on: Option<Cluster>,
    /// Tasks of Slurm's array, or trials at once [default: as many as useful].
    #[arg(long, value_name = "N", requires = "on", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub workers: Option<u32>,
    /// Address of Ray's cluster, or directory of HyperQueue's server.
    #[arg(long, value_name = "PLACE", requires = "on")]
    pub address: Option<String>,
    /// Option for sbatch, e.g. --partition=long; can be repeated.
    #[arg(
        long = "sbatch-arg",
        value_name = "OPTION",
        allow_hyphen_values = true,
        requires = "on"
    )]
    pub sbatch_options: Vec<String>,
}

impl LaunchOptions {
    /// Refuses options that the engine does not take.
    pub fn check(&self, cluster: Cluster) -> Result<(), String> {
        match cluster {
            Cluster::Slurm if self.address.is_some() => {
                Err("--address is for Ray and HyperQueue, and Slurm knows its own; leave it out".into())
            }
            Cluster::Ray | Cluster::Hyperqueue if !self.sbatch_options.is_empty() => {
                Err("options for sbatch are for Slurm; write --on slurm, or leave them out".into())
            }
            _ => Ok(()),
        }
    }
}

/// A sweep that has started.
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
    /// Print the progress of a sweep.
    Status {
        #[command(flatten)]
        begun: Begun,
        /// List every trial.
        #[arg(long)]
        all: bool,
    },
    /// Run free trials of a sweep until none is left, with any number of workers on any machines that see the folder.
    Work {
        #[command(flatten)]
        begun: Begun,
        /// Start with this part of the trials, e.g. 2/8 for the second of eight, then help with the rest.
        #[arg(long, value_name = "I/N", default_value = "1/1")]
        shard: Shard,
        /// Play only this trial.
        #[arg(long, value_name = "ID")]
        trial: Option<String>,
        /// End when no trial is free, instead of waiting for trials whose workers may be lost.
        #[arg(long)]
        leave: bool,
        /// Trials at once, instead of the file's budget.parallel.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
        parallel: Option<u16>,
    },
    /// Write trials.csv, curves.csv and sweep.json of the trials that have ended so far.
    Collect {
        #[command(flatten)]
        begun: Begun,
    },
    /// Let workers retry trials that have failed for good.
    Retry {
        #[command(flatten)]
        begun: Begun,
        /// Ids of the trials [default: all that have failed].
        trials: Vec<String>,
    },
}
