//! Options of `run`, `learn`, `resume` and `serve-envs`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::checkpoint::CheckpointName;
use crate::scenario::Override;
use crate::schema::range::is_plain_name;
use crate::torch;

pub const RUN_EXAMPLES: &str = "\
Examples:
  simic-engine run scenarios/quickstart.ron
  simic-engine run my.ron --seed 8 --rounds 3 --tag first
  simic-engine run my.ron --set task.batch_size=64 --set policy.controller=heuristic
  simic-engine run my.ron --dry-run       the scenario with all defaults; nothing is run
  simic-engine run - < my.ron             from standard input";
pub const LEARN_EXAMPLES: &str = "\
Examples:
  simic-engine learn clone.ron
  simic-engine learn clone.ron --rounds 40 --seed 8
  simic-engine resume latest              a run like any other
  simic-engine eval latest --against wait

A round is an update. `simic-engine explain learner.algorithm` lists the algorithms.";
pub const RESUME_EXAMPLES: &str = "\
Examples:
  simic-engine resume latest
  simic-engine resume latest --extend 5   five rounds more
  simic-engine resume 20260131-1200       the beginning of a name, if no other run has it
  simic-engine resume latest --from 40    back to the checkpoint after 40 rounds";
pub const SERVE_EXAMPLES: &str = "\
Examples:
  simic-engine serve-envs                 the built-in quickstart, for a program to speak to
  simic-engine serve-envs my.ron --set run.n_envs=16 --seed 7

simic_engine.VectorEnv, of the Python package, is such a program. It starts this command itself.
docs/reference/serve_envs.md describes the frames. Exit code 143: standard input was closed.";

/// Values of --progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressStyle {
    /// Bars on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// One line per round above two bars and a status line; without a terminal, plain lines and a note.
    Bar,
    /// A view of the whole run on the screen; as `Bar` without a terminal.
    Tui,
    /// One line per round.
    Plain,
    /// One JSON event per round.
    Json,
    /// Nothing.
    None,
}

#[derive(Clone, Debug, Default, Args)]
pub struct RunOptions {
    /// Scenario or sweep file; - is standard input [default: the built-in quickstart].
    pub scenario: Option<PathBuf>,
    /// Set a field, e.g. run.rounds=3; can be repeated.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Folder of runs [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Name of the run's own folder, which must not exist yet [default: time, name and hash].
    #[arg(long, value_name = "ID", value_parser = run_id, hide = true)]
    pub id: Option<String>,
    /// Folder that relative paths of the scenario start from [default: the scenario's].
    #[arg(long, value_name = "DIR", hide = true)]
    pub relative_to: Option<PathBuf>,
    /// Stop after this many rounds; `resume` continues.
    #[arg(long, value_name = "ROUND", value_parser = clap::value_parser!(u32).range(1..))]
    pub until: Option<u32>,
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
    /// Device of envs and policy; auto is cuda:0 or cpu.
    #[arg(long, value_name = "auto|cpu|cuda:N")]
    pub device: Option<String>,
    /// Several devices over which the envs are spread.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub devices: Vec<String>,
    /// auto, bar, tui, plain, json or none.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "HOW")]
    pub progress: ProgressStyle,
    /// Print what would be run, and stop.
    #[arg(long)]
    pub dry_run: bool,
    /// Word by which `runs --tag` finds the run; can be repeated.
    #[arg(long = "tag", value_name = "WORD")]
    pub tags: Vec<String>,
}

impl RunOptions {
    /// All overrides of the command line. Their values are checked with the scenario's, so that every problem is
    /// reported at once.
    ///
    /// # Errors
    /// A `--set` without `=`.
    pub fn overrides(&self) -> Result<Vec<Override>, String> {
        let flags = [
            ("--seed", "run.seed", &self.seed),
            ("--rounds", "run.rounds", &self.rounds),
            ("--envs", "run.n_envs", &self.envs),
            ("--steps", "run.max_steps", &self.steps),
        ];
        let flags = flags.into_iter().filter_map(|(flag, path, value)| {
            let value = value.as_ref()?;
            Some(Override::flag(flag, path, value))
        });
        let device = self.device.as_ref().map(|device| {
            let name = if device == "auto" { automatic_device() } else { device };
            devices(format!("--device {device}"), &[name])
        });
        let several = (!self.devices.is_empty()).then(|| {
            let names: Vec<&str> = self.devices.iter().map(String::as_str).collect();
            devices(format!("--devices {}", self.devices.join(",")), &names)
        });
        let sets = self.sets.iter().map(|assignment| Override::parse(assignment));
        let sets = sets.collect::<Result<Vec<_>, _>>()?;
        // One device is the policy's as well, unless another is asked for.
        let nowhere_else = |device: &Override| Override::argument(device.shown.clone(), "policy.device", "None".into());
        let policy = device.as_ref().map(nowhere_else);
        let policy = policy.filter(|policy| !sets.iter().any(|set| set.overlaps(policy)));
        let devices = device.into_iter().chain(several).chain(policy);
        Ok(flags.chain(devices).chain(sets).collect())
    }
}

/// A name that can be a folder's.
fn run_id(text: &str) -> Result<String, String> {
    is_plain_name(text, 64)
        .then(|| text.to_owned())
        .ok_or_else(|| "valid: 1 to 64 letters, digits, `.`, `_` or `-`, beginning with a letter or digit".into())
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

#[derive(Clone, Debug, Default, Args)]
pub struct ResumeOptions {
    /// Run: its folder, its name or the beginning of it, or latest.
    pub run: PathBuf,
    /// Checkpoint to resume from: last, best, or the number of rounds played before it; later records are moved aside.
    #[arg(long, value_name = "last|best|ROUND", default_value = "last")]
    pub from: CheckpointName,
    /// Play this many rounds more than planned.
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub extend: Option<u32>,
    /// Stop after this many rounds of the run.
    #[arg(long, value_name = "ROUND", value_parser = clap::value_parser!(u32).range(1..))]
    pub until: Option<u32>,
    /// Change a field. run.rounds, run.checkpoint_every_steps and run.memory_limit_gib may always change; others need --allow.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Field or section that may change during the run, or data.hash for the data itself; can be repeated.
    #[arg(long = "allow", value_name = "PATH")]
    pub allowed: Vec<String>,
    /// Folder that contains the run [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// auto, bar, tui, plain, json or none.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "HOW")]
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
                .ok_or_else(|| format!("--extend {more}: the run has {rounds} already; more cannot be counted"))?;
            let shown = format!("--extend {more}");
            Ok(Override::argument(shown, "run.rounds", rounds.to_string()))
        });
        extended
            .chain(self.sets.iter().map(|assignment| Override::parse(assignment)))
            .collect()
    }
}

#[derive(Clone, Debug, Args)]
pub struct ServeOptions {
    /// Scenario file [default: the built-in quickstart].
    pub scenario: Option<PathBuf>,
    /// Set a field, e.g. run.n_envs=16; can be repeated.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Same as --set run.seed=…
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,
}
