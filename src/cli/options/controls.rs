//! Of `controls`.

use std::path::PathBuf;

use clap::Args;

use crate::checkpoint::CheckpointName;
use crate::controls::Control;

#[derive(Clone, Debug, Args)]
pub struct ControlsOptions {
    /// A run, finished or not: its folder, its name or the beginning of it, or latest.
    pub run: PathBuf,
    /// Folder in which the run is looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Whose policy: that of the newest checkpoint, of the one with the best rolling accuracy, or of the one after so many
    /// rounds.
    #[arg(long, value_name = "last|best|ROUND", default_value = "last")]
    pub from: CheckpointName,
    /// Only these controls: never-grown, equal-epochs, equal-compute, equal-seconds, widened, schedules, heuristic,
    /// periodic, fragrow [default: all].
    #[arg(
        long,
        value_enum,
        value_name = "A,B",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub only: Vec<Control>,
    /// Episodes of each row under each seed, rounded up to whole rounds [default: 2 for every env].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub episodes: Option<u32>,
    /// Play under other seeds than the run's.
    #[arg(long = "seed", value_name = "N,M", value_delimiter = ',')]
    pub seeds: Vec<u64>,
    /// Schedules to choose the best of, each by a round [default: as many as the policy's training would have paid for].
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    pub schedules: Option<u32>,
    /// Compare with the policy's likeliest actions, not with those that it draws.
    #[arg(long)]
    pub greedy: bool,
    /// Set a field of the scenario, e.g. policy.periodic.period=5; may be given often.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
}
