//! Subcommands and flags.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::compare::CompareOptions;
use super::sweep::SweepOptions;
use crate::checkpoint::CheckpointName;
use crate::scenario::Override;
use crate::telemetry::sinks::{ColorChoice, ProgressStyle};
use crate::torch;

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
#[command(next_help_heading = "Of every command")]
pub struct GlobalOptions {
    /// Print only errors and results.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more of the log; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Colours in the output.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorChoice,
    /// Print results as one JSON document on standard output.
    #[arg(long, global = true)]
    pub json: bool,
    /// Append the log to this file instead of log.txt in the run's folder.
    #[arg(long, global = true, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// Worker threads; all cores if left out.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// End at once when standard input does: with the process that holds its other end.
    #[arg(long, global = true, hide = true)]
    pub ends_with_input: bool,
}

impl GlobalOptions {
    pub fn colour_stderr(&self) -> bool {
        self.color.is_colored(std::io::stderr().is_terminal())
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Train what a scenario describes.
    Run(Box<RunOptions>),
    /// Go on with a run that was stopped or killed, from its newest checkpoint.
    Resume(ResumeOptions),
    /// Play a run's policy as it is against baselines, on the same episodes, and compare them.
    Eval(Box<EvalOptions>),
    /// Compare methods over the trainings of runs and sweeps: is one better than the other, and by how much?
    Compare(Box<CompareOptions>),
    /// Play many trainings of one scenario, with different settings and seeds, on this machine or many.
    Sweep(Box<SweepOptions>),
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
    Rewards,
    Controllers,
    Presets,
    Events,
    Plugins,
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
    /// Name of the run's own folder, which must not be there yet [default: time, name and hash].
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Folder in which relative paths of the scenario start [default: the scenario's].
    #[arg(long, value_name = "DIR")]
    pub relative_to: Option<PathBuf>,
    /// Stop once so many rounds are played; `resume` plays the others.
    #[arg(long, value_name = "ROUND", value_parser = clap::value_parser!(u32).range(1..))]
    pub until: Option<u32>,
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
    /// Same as --set run.devices=[…]; auto: the first CUDA device, or cpu where there is none.
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Several devices, over which the envs are spread.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub devices: Vec<String>,
    /// Same as --set training.amp=…
    #[arg(long, value_name = "MODE")]
    pub amp: Option<String>,
    /// Same as --set telemetry.level=…
    #[arg(long)]
    pub level: Option<String>,
    /// How progress is shown.
    #[arg(long, value_enum, default_value_t)]
    pub progress: ProgressStyle,
    /// Say what would be run, and stop.
    #[arg(long)]
    pub dry_run: bool,
    /// A word to find the run by, kept in its manifest; may be given often.
    #[arg(long = "tag", value_name = "WORD")]
    pub tags: Vec<String>,
    /// Keep the names of computer and user in the manifest.
    #[arg(long)]
    pub identify: bool,
}

#[derive(Clone, Debug, Default, Args)]
pub struct ResumeOptions {
    /// The run's own folder, or its id, or `latest`.
    pub run: PathBuf,
    /// Checkpoint to go on from: last, best, or the number of rounds played by then; what was recorded after it is
    /// moved aside.
    #[arg(long, value_name = "last|best|ROUND", default_value = "last")]
    pub from: CheckpointName,
    /// Play so many rounds more than the run was to have.
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub extend: Option<u32>,
    /// Stop once so many rounds of the run are played.
    #[arg(long, value_name = "ROUND", value_parser = clap::value_parser!(u32).range(1..))]
    pub until: Option<u32>,
    /// Change a field. run.rounds, run.stop_at, run.checkpoint_every and run.keep_last may change as they are; others need
    /// --allow.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// A field, or a section of fields, that may change in the course of the run, or data.hash: the data themselves; may be
    /// given often.
    #[arg(long = "allow", value_name = "PATH")]
    pub allowed: Vec<String>,
    /// Folder in which runs are looked for by id [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How progress is shown.
    #[arg(long, value_enum, default_value_t)]
    pub progress: ProgressStyle,
}

impl ResumeOptions {
    /// All overrides of the command line, for a run that was to have `rounds`.
    ///
    /// # Errors
    /// A `--set` without `=`; more rounds than can be counted.
    pub fn overrides(&self, rounds: u32) -> Result<Vec<Override>, String> {
        let extended = self.extend.iter().map(|more| {
            let rounds = rounds
                .checked_add(*more)
                .ok_or_else(|| format!("--extend {more}: the run has {rounds} rounds; more cannot be counted"))?;
            let shown = format!("--extend {more}");
            Ok(Override::argument(shown, "run.rounds", rounds.to_string()))
        });
        extended
            .chain(self.sets.iter().map(|assignment| Override::parse(assignment)))
            .collect()
    }
}

#[derive(Clone, Debug, Args)]
pub struct EvalOptions {
    /// Folder or name of a run, finished or not, or folder of a saved policy.
    pub run: PathBuf,
    /// Scenario to play instead of the run's own; its slots, steps and network must be those of the policy.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Episodes of each controller under each seed, rounded up to whole rounds [default: 10 for every env].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub episodes: Option<u32>,
    /// Whom to compare the policy with [default: heuristic,random,wait]; actor_critic is an untrained policy.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub controllers: Option<Vec<String>>,
    /// The policy takes its likeliest actions; both ways if neither is asked for.
    #[arg(long)]
    pub greedy: bool,
    /// The policy draws its actions.
    #[arg(long)]
    pub sample: bool,
    /// Play under other seeds than the run's.
    #[arg(long = "seed", value_name = "N,M", value_delimiter = ',')]
    pub seeds: Vec<u64>,
    /// Set one field of the scenario, e.g. --set run.n_envs=4; may be given often.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
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
            ("--amp", "training.amp", &self.amp),
            ("--level", "telemetry.level", &self.level),
        ];
        let flags = flags.into_iter().filter_map(|(flag, path, value)| {
            let value = value.as_ref()?;
            Some(Ok(Override::flag(flag, path, value)))
        });
        let device = self.device.as_ref().map(|device| {
            let name = if device == "auto" { automatic_device() } else { device };
            devices(format!("--device {device}"), &[name])
        });
        let several = (!self.devices.is_empty()).then(|| {
            let names: Vec<&str> = self.devices.iter().map(String::as_str).collect();
            devices(format!("--devices {}", self.devices.join(",")), &names)
        });
        flags
            .chain(device.into_iter().chain(several).map(Ok))
            .chain(self.sets.iter().map(|assignment| Override::parse(assignment)))
            .collect()
    }
}

/// Sets `run.devices`; `shown` is what the user typed.
fn devices(shown: String, names: &[&str]) -> Override {
    Override::argument(shown, "run.devices", format!("{names:?}"))
}

/// The first CUDA device, where libtorch can use one.
fn automatic_device() -> &'static str {
    match torch::load_cuda(&[0], false) {
        Ok(()) => "cuda:0",
        Err(_) => "cpu",
    }
}
