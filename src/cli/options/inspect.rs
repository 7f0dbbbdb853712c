//! Of `check` and `diff`.

use std::path::PathBuf;

use clap::Args;

use crate::inspect::{DiffKind, Extent};

pub const CHECK_EXAMPLES: &str = "\
Examples:
  simic-engine check latest
  simic-engine check runs/sweeps/quick    a sweep and all of its trials
  simic-engine check 20260131-1200 --json

Nothing is changed; a run may be checked while it is played. Exit codes:
  0  all is as it should be
  1  damaged, but it can be resumed
  6  it cannot be resumed, but can be used for what is printed
  7  unusable";
pub const DIFF_EXAMPLES: &str = "\
Examples:
  simic-engine diff 20260131-1200 latest
  simic-engine diff runs/a runs/b --all=3 --only events,checkpoints
  simic-engine diff runs/a runs/b --json

Clocks, sizes and numbers of events are left out. Exit codes:
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
