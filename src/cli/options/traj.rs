//! Of `traj`.

use std::path::PathBuf;

use clap::Subcommand;

pub const TRAJ_EXAMPLES: &str = "\
Examples:
  simic-engine run my.ron --set run.trajectories=true
  simic-engine traj info latest           what the newest run has recorded
  simic-engine traj check a.traj b.traj   whole? of one form, so that they can be learnt from together?

docs/reference/trajectories.md says what the files hold; the Python package reads them.";

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
