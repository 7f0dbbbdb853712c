//! Subcommands and flags.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::scenario::Override;

/// Trains networks that grow while they train.
#[derive(Clone, Debug, Parser)]
#[command(name = "simic-engine", version, propagate_version = true)]
pub struct Arguments {
    #[command(flatten)]
    pub global: GlobalOptions,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Clone, Debug, Args)]
pub struct GlobalOptions {
    /// Print only errors and results.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more of the log; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Colours in the output.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColourChoice,
    /// Worker threads; all cores if left out.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    Always,
    Never,
}

impl GlobalOptions {
    pub fn colour_stderr(&self) -> bool {
        match self.color {
            ColourChoice::Always => true,
            ColourChoice::Never => false,
            ColourChoice::Auto => std::env::var_os("NO_COLOR").is_none() && std::io::stderr().is_terminal(),
        }
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Train what a scenario describes.
    Run(RunOptions),
    /// Check scenarios and print every problem, without running anything.
    Validate {
        #[arg(required = true, value_name = "FILE")]
        scenarios: Vec<PathBuf>,
    },
    /// List what this build knows.
    List {
        #[arg(value_enum)]
        what: ListWhat,
    },
    /// Explain one scenario field, or list the fields of a section.
    Explain {
        /// Dotted path, e.g. run.n_envs; the sections if left out.
        path: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListWhat {
    Tasks,
    Hosts,
    Blueprints,
    Controllers,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressStyle {
    /// A bar on a terminal, plain lines otherwise.
    #[default]
    Auto,
    Bar,
    Plain,
    Json,
    None,
}

#[derive(Clone, Debug, Default, Args)]
pub struct RunOptions {
    /// Scenario file; the built-in quickstart if left out.
    pub scenario: Option<PathBuf>,
    /// Set one field, e.g. --set run.rounds=3; may be given often.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Folder in which the run's own folder is made [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Same as --set name=…
    #[arg(long)]
    pub name: Option<String>,
    /// Same as --set run.seed=…
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,
    /// Same as --set run.rounds=…
    #[arg(long, value_name = "N")]
    pub rounds: Option<String>,
    /// Same as --set run.n_envs=…
    #[arg(long, value_name = "N")]
    pub envs: Option<String>,
    /// Same as --set run.max_steps=…
    #[arg(long, value_name = "N")]
    pub steps: Option<String>,
    /// Same as --set telemetry.level=…
    #[arg(long)]
    pub level: Option<String>,
    /// How progress is shown.
    #[arg(long, value_enum, default_value_t)]
    pub progress: ProgressStyle,
    /// Say what would be run, and stop.
    #[arg(long)]
    pub dry_run: bool,
}

impl RunOptions {
    /// All overrides of the command line. Their values are checked with the scenario's, so that every problem is
    /// reported at once.
    ///
    /// # Errors
    /// A `--set` without `=`.
    pub fn overrides(&self) -> Result<Vec<Override>, String> {
        let flags = [
            ("--name", "name", &self.name),
            ("--seed", "run.seed", &self.seed),
            ("--rounds", "run.rounds", &self.rounds),
            ("--envs", "run.n_envs", &self.envs),
            ("--steps", "run.max_steps", &self.steps),
            ("--level", "telemetry.level", &self.level),
        ];
        let flags = flags.into_iter().filter_map(|(flag, path, value)| {
            let value = value.as_ref()?;
            Some(Ok(Override::flag(flag, path, value)))
        });
        flags
            .chain(self.sets.iter().map(|assignment| Override::parse(assignment)))
            .collect()
    }

    /// Folder of all runs: `--out`, else `SIMIC_ENGINE_RUNS`, else `runs` (spec 07 §12.1).
    pub fn runs_folder(&self) -> PathBuf {
        self.out
            .clone()
            .or_else(|| std::env::var_os("SIMIC_ENGINE_RUNS").map(PathBuf::from))
            .unwrap_or_else(|| "runs".into())
    }
}
