//! Of `traj`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub const TRAJ_EXAMPLES: &str = "\
Examples:
  simic-engine run my.ron --set run.trajectories=true
  simic-engine traj info latest           what the newest run has recorded
  simic-engine traj check a.traj b.traj   whole? of one form, so that they can be learnt from together?
  simic-engine traj from-run 20260131-1200 -o old.traj

docs/reference/trajectories.md says what the files hold; the Python package reads them.";

#[derive(Clone, Debug, Subcommand)]
pub enum TrajCommand {
    /// Say what a set of trajectories holds.
    Info(SetOptions),
    /// Verify sets: every shard against its checksum and the manifest, and all of them against the first.
    Check {
        /// Folders of sets or runs, or names of runs.
        #[arg(required = true, value_name = "SET|RUN")]
        sources: Vec<PathBuf>,
        /// Folder in which runs are looked for [default: $SIMIC_ENGINE_RUNS or runs].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Write the trajectories of a run that recorded none: it is played once more, and what it records must be the same.
    FromRun {
        #[command(flatten)]
        source: SetOptions,
        /// Folder to write, NAME.traj; it must not be there.
        #[arg(short = 'o', long, value_name = "DIR")]
        output: PathBuf,
    },
}

#[derive(Clone, Debug, Args)]
pub struct SetOptions {
    /// Folder of a set; or the run's folder, its name or the beginning of it, or latest.
    #[arg(value_name = "SET|RUN")]
    pub run: PathBuf,
    /// Folder in which the run is looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
