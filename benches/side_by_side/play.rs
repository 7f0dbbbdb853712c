//! One workload played by one binary: a child process, and the figures from its events.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use wait4::{ResourceUsage, Wait4};

use crate::workloads::{Span, Workload};

/// A program that plays scenarios, and fields of the scenario that are set for it.
#[derive(Debug)]
pub struct Binary {
    path: PathBuf,
    set: Vec<String>,
}

/// The figures of the measured part of a play; not a number where there is nothing of the kind.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub wall_s: f64,
    pub env_steps_per_s: f64,
    /// Training samples of all envs.
    pub train_samples_per_s: f64,
    /// Validation samples times coalitions, of all envs.
    pub val_forwards_per_s: f64,
    pub ms_per_env_step: f64,
    /// Mean time that the validation pass of an env's step takes, of steps with coalitions.
    pub coalition_ms: f64,
    /// Mean time of a policy update.
    pub update_ms: f64,
    /// Of the whole process.
    pub peak_rss_mib: f64,
    /// Processor time of the whole process.
    pub cpu_s: f64,
}

impl Binary {
    /// # Errors
    /// There is no such file.
    pub fn new(path: &Path, set: Vec<String>) -> Result<Self, String> {
        if path.is_file() {
            return Ok(Self { path: path.into(), set });
        }
        let path = path.display();
        Err(format!(
            "{path}: no such program; `cargo build --release` in its sources makes target/release/simic-engine"
        ))
    }

    /// Whether the program finds nothing wrong with the workload's scenario.
    pub fn check(&self, workload: &Workload, folder: &Path) -> Result<(), Box<dyn Error>> {
        self.run(workload, folder, None).map(drop)
    }

    /// Plays the workload in `folder` and reads its record.
    pub fn play(&self, workload: &Workload, folder: &Path) -> Result<Figures, Box<dyn Error>> {
        let runs = tempfile::tempdir_in(folder)?;
        let usage = self.run(workload, folder, Some(runs.path()))?;
        let mut entries = fs::read_dir(runs.path())?.flatten().map(|entry| entry.path());
        let run = entries.find(|path| path.is_dir()).ok_or("the run has left no record")?;
        let mut reading = Reading::default();
        for line in BufReader::new(File::open(run.join("events.jsonl"))?).lines() {
            reading.take(workload, &serde_json::from_str(&line?)?)?;
        }
        reading.figures(workload, &usage)
    }

    /// Records the run under `out`; without it the scenario is only checked.
    fn run(&self, workload: &Workload, folder: &Path, out: Option<&Path>) -> Result<ResourceUsage, Box<dyn Error>> {
        let scenario = folder.join(format!("{}.ron", workload.name));
        fs::write(&scenario, &workload.scenario)?;
        let mut command = Command::new(&self.path);
        command.arg("run").arg(scenario);
        match out {
            Some(out) => command.args(["--progress", "none", "--out"]).arg(out),
            None => command.arg("--dry-run"),
        };
        for field in &self.set {
            command.args(["--set", field]);
        }
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut told = String::new();
        if let Some(stderr) = &mut child.stderr {
            stderr.read_to_string(&mut told)?;
        }
        let end = child.wait4()?;
        match end.status.success() {
            true => Ok(end.rusage),
            false => Err(format!("{}: {}\n{told}", self.path.display(), end.status).into()),
        }
    }
}

/// The events of a run, one after another.
#[derive(Default)]
struct Reading {
    began: Option<OffsetDateTime>,
    ended: Option<OffsetDateTime>,
    env_steps: u64,
    /// Steps of which coalitions were told, and those coalitions.
    measured_steps: u64,
    coalitions: u64,
    coalition_ms: f64,
    updates: u64,
    update_ms: f64,
    samples_per_env_step: f64,
}

impl Reading {
    fn take(&mut self, workload: &Workload, event: &Value) -> Result<(), Box<dyn Error>> {
        let data = &event["data"];
        let (is_inside, moment) = match workload.span {
            Span::Steps { after } => (event["step"].as_u64() > Some(after.into()), "env_step"),
            Span::Rounds => (event["round"].as_u64() > Some(0), "round_finished"),
        };
        let kind = event["type"].as_str().unwrap_or_default();
        match kind {
            "env_step" => self.env_steps += u64::from(is_inside),
            "counterfactual_matrix" if is_inside => {
                self.measured_steps += 1;
                self.coalitions += data["rows"].as_array().map_or(0, Vec::len) as u64;
                self.coalition_ms += data["total_ms"].as_f64().unwrap_or_default();
            }
            "learner_update" if is_inside => {
                self.updates += 1;
                self.update_ms += data["update_ms"].as_f64().unwrap_or_default();
            }
            "round_finished" => {
                let perf = &data["perf"];
                let rates = perf["samples_per_s"].as_f64().zip(perf["env_steps_per_s"].as_f64());
                self.samples_per_env_step = rates.map_or(f64::NAN, |(samples, steps)| samples / steps);
            }
            _ => {}
        }
        if kind == moment {
            let at = event["t"].as_str().ok_or("an event has no time")?;
            // The last event before the measured part begins it, the last one inside ends it.
            let end = if is_inside { &mut self.ended } else { &mut self.began };
            *end = Some(OffsetDateTime::parse(at, &Rfc3339)?);
        }
        Ok(())
    }

    fn figures(&self, workload: &Workload, usage: &ResourceUsage) -> Result<Figures, Box<dyn Error>> {
        let name = workload.name;
        let (Some(began), Some(ended)) = (self.began, self.ended) else {
            return Err(format!("{name}: the measured part is missing in the record").into());
        };
        let live = workload.seeds.filter(|&seeds| seeds > 0);
        if let Some(live) = live.map(|seeds| self.env_steps << seeds)
            && self.coalitions != live
        {
            let told = format!("{} coalitions instead of {live}", self.coalitions);
            return Err(format!("{name}: {told}: not all seeds are live").into());
        }
        let (wall_s, env_steps) = ((ended - began).as_seconds_f64(), self.env_steps as f64);
        let configurations = self.coalitions + self.env_steps - self.measured_steps;
        Ok(Figures {
            wall_s,
            env_steps_per_s: env_steps / wall_s,
            train_samples_per_s: (self.samples_per_env_step * env_steps).round() / wall_s,
            val_forwards_per_s: (configurations * workload.val_samples) as f64 / wall_s,
            ms_per_env_step: 1e3 * wall_s / env_steps,
            coalition_ms: self.coalition_ms / self.measured_steps as f64,
            update_ms: self.update_ms / self.updates as f64,
            peak_rss_mib: usage.maxrss as f64 / f64::from(1 << 20),
            cpu_s: (usage.utime + usage.stime).as_secs_f64(),
        })
    }
}
