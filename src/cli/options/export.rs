//! Of `export` and `export-tables`.

use std::path::PathBuf;

use clap::Args;

pub const EXPORT_EXAMPLES: &str = "\
Examples:
  simic-engine export latest -o grown/                        the best network that the newest run has kept
  simic-engine export latest --round 8 --env 7 -o grown/
  simic-engine export runs/mine/networks/round8-env7.safetensors -o grown/
  cd grown && python -c 'import network; print(network.load())'
  simic-engine export latest --policy -o policy/              what decides, for VectorEnv of the Python package

The folder needs nothing but torch: network.py with network.safetensors, what is known of it in card.md and card.json, and
kept.safetensors, the engine's own file.";
pub const EXPORT_TABLES_EXAMPLES: &str = "\
Examples:
  simic-engine export-tables latest -o tables
  simic-engine export-tables runs/sweeps/quick -o tables
  python -c \"import pandas; print(pandas.read_parquet('tables/rounds.parquet'))\"

Of a run: rounds, steps, seed_steps, seeds, decisions, updates and episodes; of a sweep: trials.
What their columns are: docs/reference/tables.md. Tables of an earlier export are replaced.";

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
