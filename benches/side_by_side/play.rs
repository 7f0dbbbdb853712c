//! One workload played by one binary: a child process, and the figures that its events tell.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use wait4::Wait4;

use crate::workloads::{Span, Workload};

/// A program that plays scenarios, and fields of the scenario that are set for it.
#[derive(Debug)]
pub struct Binary {
    path: PathBuf,
    set: Vec<String>,
}

/// What the measured part of a play came to.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub wall_s: f64,
    pub env_steps: u64,
    /// Training samples of all envs.
    pub train_samples: u64,
    /// Validation samples times coalitions, of all envs.
    pub forwards: u64,
    /// Mean time that the validation pass of an env's step takes; `None` where it has no coalitions.
    pub coalition_ms: Option<f64>,
    /// Mean time of a policy update; `None` where nothing learns.
    pub update_ms: Option<f64>,
    /// Of the whole process.
    pub peak_rss_mib: f64,
    /// Processor time of the whole process.
    pub cpu_s: f64,
}

impl Figures {
    pub fn env_steps_per_s(&self) -> f64 {
        self.env_steps as f64 / self.wall_s
    }

    pub fn train_samples_per_s(&self) -> f64 {
        self.train_samples as f64 / self.wall_s
    }

    pub fn forwards_per_s(&self) -> f64 {
        self.forwards as f64 / self.wall_s
    }

    pub fn ms_per_env_step(&self) -> f64 {
        1e3 * self.wall_s / self.env_steps as f64
    }
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
        let scenario = self.write(workload, folder)?;
        let mut command = Command::new(&self.path);
        command.arg("run").arg(scenario).arg("--dry-run").args(self.overrides());
        self.run(command).map(drop)
    }

    /// Plays the workload in `folder` and reads its record.
    pub fn play(&self, workload: &Workload, folder: &Path) -> Result<Figures, Box<dyn Error>> {
        let scenario = self.write(workload, folder)?;
        let runs = tempfile::tempdir_in(folder)?;
        let mut command = Command::new(&self.path);
        command.arg("run").arg(scenario).args(["--progress", "none", "--out"]);
        command.arg(runs.path()).args(self.overrides());
        let usage = self.run(command)?;
        let record = only_folder(runs.path())?.join("events.jsonl");
        let mut reading = Reading::new(workload);
        for line in BufReader::new(File::open(record)?).lines() {
            reading.take(&serde_json::from_str(&line?)?)?;
        }
        reading.figures(&usage)
    }

    fn overrides(&self) -> impl Iterator<Item = String> {
        self.set.iter().flat_map(|set| ["--set".to_owned(), set.clone()])
    }

    fn write(&self, workload: &Workload, folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
        let file = folder.join(format!("{}.ron", workload.name));
        fs::write(&file, &workload.scenario)?;
        Ok(file)
    }

    fn run(&self, mut command: Command) -> Result<wait4::ResourceUsage, Box<dyn Error>> {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut told = String::new();
        if let Some(stderr) = &mut child.stderr {
            stderr.read_to_string(&mut told)?;
        }
        let end = child.wait4()?;
        if end.status.success() {
            Ok(end.rusage)
        } else {
            Err(format!("{}: {}\n{told}", self.path.display(), end.status).into())
        }
    }
}

fn only_folder(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            return Ok(entry.path());
        }
    }
    Err("the run has left no record".into())
}

/// The events of a run, one after another.
struct Reading<'a> {
    workload: &'a Workload,
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

impl<'a> Reading<'a> {
    fn new(workload: &'a Workload) -> Self {
        Self {
            workload,
            began: None,
            ended: None,
            env_steps: 0,
            measured_steps: 0,
            coalitions: 0,
            coalition_ms: 0.0,
            updates: 0,
            update_ms: 0.0,
            samples_per_env_step: 0.0,
        }
    }

    fn take(&mut self, event: &Value) -> Result<(), Box<dyn Error>> {
        let Some(kind) = event["type"].as_str() else {
            return Ok(());
        };
        let data = &event["data"];
        let is_inside = match self.workload.span {
            Span::Steps { after } => event["step"].as_u64().is_some_and(|step| step > after.into()),
            Span::Rounds => event["round"].as_u64().is_some_and(|round| round > 0),
        };
        match kind {
            "env_step" => {
                self.env_steps += u64::from(is_inside);
                if let Span::Steps { .. } = self.workload.span {
                    self.mark(is_inside, event)?;
                }
            }
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
                if let Span::Rounds = self.workload.span {
                    self.mark(is_inside, event)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The last event before the measured part begins it, the last one inside ends it.
    fn mark(&mut self, is_inside: bool, event: &Value) -> Result<(), Box<dyn Error>> {
        let at = event["t"].as_str().ok_or("an event tells no time")?;
        let at = OffsetDateTime::parse(at, &Rfc3339)?;
        if is_inside {
            self.ended = Some(at);
        } else {
            self.began = Some(at);
        }
        Ok(())
    }

    fn figures(&self, usage: &wait4::ResourceUsage) -> Result<Figures, Box<dyn Error>> {
        let name = self.workload.name;
        let (began, ended) = self
            .began
            .zip(self.ended)
            .ok_or_else(|| format!("{name}: the measured part is missing in the record"))?;
        if let Some(seeds) = self.workload.seeds.filter(|&seeds| seeds > 0) {
            let live = self.env_steps << seeds;
            if self.coalitions != live {
                let coalitions = self.coalitions;
                return Err(
                    format!("{name}: {coalitions} coalitions instead of {live}: not all seeds are live").into(),
                );
            }
        }
        let configurations = self.coalitions + self.env_steps - self.measured_steps;
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        Ok(Figures {
            wall_s: (ended - began).as_seconds_f64(),
            env_steps: self.env_steps,
            train_samples: (self.samples_per_env_step * self.env_steps as f64).round() as u64,
            forwards: configurations * self.workload.val_samples,
            coalition_ms: mean(self.coalition_ms, self.measured_steps),
            update_ms: mean(self.update_ms, self.updates),
            peak_rss_mib: usage.maxrss as f64 / f64::from(1 << 20),
            cpu_s: (usage.utime + usage.stime).as_secs_f64(),
        })
    }
}
