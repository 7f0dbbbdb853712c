//! Existing engines that spread a sweep over machines. A sweep's folder is all that its workers share, so an engine only has
//! to start `sweep work` on machines that see the folder: Slurm as the tasks of a job array, Ray and HyperQueue as one task per
//! trial, which a small Python program hands to them.

use std::fmt::Write;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::file::Budget;
use super::folder::{SweepError, SweepFolder, replace_shared};
use super::plan::Plan;
use crate::health::AtPath;

const SLURM_SCRIPT: &str = "slurm.sh";
const ROUNDS: (&str, &str) = ("rounds.py", include_str!("drivers/rounds.py"));
/// Largest job array that Slurm allows by default (`MaxArraySize`, 1001, is one more).
const MOST_TASKS: usize = 1000;
/// Memory of a worker apart from its trials.
const WORKER_MIB: u64 = 256;

/// An engine that starts workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Cluster {
    /// A job array of workers.
    Slurm,
    /// One task per trial; needs Python's package ray.
    Ray,
    /// One task per trial; needs Python's package hyperqueue.
    Hyperqueue,
}

/// A sweep, and the way its workers are started.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// Folder of the sweep.
    pub folder: &'a SweepFolder,
    /// Trials to play.
    pub plan: &'a Plan,
    /// This program, by a path that all machines know.
    pub program: PathBuf,
    /// Tasks of a job array, or trials at once elsewhere. `None`: as many as useful.
    pub workers: Option<usize>,
    /// Trials that a worker of a job array plays at once.
    pub parallel: usize,
    /// Worker threads of a trial, if they are given.
    pub threads: Option<usize>,
    /// CUDA devices of a trial.
    pub gpus: usize,
    /// Address of the cluster that a driver connects to.
    pub address: Option<String>,
}

impl Cluster {
    /// # Errors
    /// A path that its script, or the engine itself, would take for something else.
    pub fn takes(self, path: &Path) -> Result<(), SweepError> {
        let text = path.to_string_lossy();
        let (engine, what, is_bad) = match self {
            // A line of its own is a command of the script; a quotation mark ends an option.
            Self::Slurm => (
                "Slurm",
                "control characters or \"",
                text.contains(|letter: char| letter.is_control() || letter == '"'),
            ),
            Self::Hyperqueue => ("HyperQueue", "%{, which begins a placeholder", text.contains("%{")),
            Self::Ray => return Ok(()),
        };
        if !is_bad {
            return Ok(());
        }
        Err(SweepError::Refused(format!(
            "{path:?}: {engine} cannot take a path with {what}; give another folder by --out DIR, or move the program"
        )))
    }
}

impl Launch<'_> {
    /// Path of the script of the job array.
    pub fn slurm_path(&self) -> PathBuf {
        self.folder.file(SLURM_SCRIPT)
    }

    /// Tasks of the job array.
    pub fn tasks(&self) -> usize {
        let of_use = self.plan.trials.len().div_ceil(self.parallel).clamp(1, MOST_TASKS);
        self.workers.unwrap_or(of_use)
    }

    /// A job array of workers, each with its share of the trials and of the budget.
    pub fn slurm_script(&self) -> String {
        let Budget {
            memory_mib,
            time_limit_s,
            ..
        } = self.plan.sweep.budget;
        let tasks = self.tasks();
        let parallel = self.parallel;
        let folder = self.folder.path();
        let log = folder.join("logs").to_string_lossy().replace('%', "%%");
        let mut script = format!(
            "#!/bin/sh\n\
             # Workers of a sweep. Each takes free trials, and ends when none is free. When all have ended, submit this file\n\
             # again to run what is left.\n\
             #SBATCH --job-name={}\n\
             #SBATCH --array=1-{tasks}\n\
             #SBATCH --output=\"{log}/slurm-%A_%a.log\"\n",
            self.plan.name,
        );
        let mut option = |line: String| _ = writeln!(script, "#SBATCH {line}");
        if let Some(threads) = self.threads {
            option(format!("--cpus-per-task={}", threads * parallel));
        }
        if self.gpus > 0 {
            option(format!("--gres=gpu:{}", self.gpus));
        }
        if let Some(memory) = memory_mib {
            option(format!("--mem={}M", memory * parallel as u64 + WORKER_MIB));
        }
        if let Some(limit) = time_limit_s {
            let one_after_another = self.plan.trials.len().div_ceil(tasks).div_ceil(parallel);
            option(format!(
                "--time={}",
                (limit * one_after_another as u64).div_ceil(60) + 1
            ));
        }
        let mut words = vec![quoted(&self.program), "sweep work".into(), quoted(folder)];
        words.push(format!(
            "--shard \"$SLURM_ARRAY_TASK_ID/{tasks}\" --leave --parallel {parallel}"
        ));
        words.extend(self.threads.map(|threads| format!("--threads {threads}")));
        // `exec`: signals of Slurm reach the worker.
        _ = writeln!(script, "exec {}", words.join(" "));
        script
    }

    /// Writes the script of the job array and submits it with these options of `sbatch`; the id of the job.
    ///
    /// # Errors
    /// There is no `sbatch`, or it does not take the job.
    pub fn submit(&self, options: &[String]) -> Result<String, SweepError> {
        let script = self.slurm_path();
        replace_shared(&script, self.slurm_script().as_bytes()).at(&script)?;
        let mut command = Command::new("sbatch");
        let Output { status, stdout, stderr } = started(
            command.arg("--parsable").args(options).arg(&script).output(),
            "sbatch",
            "submit the sweep on a machine with Slurm's commands (Debian and Ubuntu: apt-get install slurm-client)",
        )?;
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if !status.success() {
            return Err(SweepError::Refused(format!(
                "sbatch submitted nothing ({status}) and said:\n{}\nThe sweep is planned; to submit it: sbatch {}",
                words(&stderr),
                script.display()
            )));
        }
        let reply = words(&stdout);
        // `ID` or `ID;CLUSTER`
        match reply.split(';').next() {
            Some(id) if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) => Ok(id.into()),
            _ => Err(SweepError::Refused(format!(
                "sbatch succeeded, but printed no job id: `{reply}`; `squeue --me` lists what was submitted"
            ))),
        }
    }

    /// The driver for an engine that takes trials one by one, and its arguments; none for Slurm.
    pub fn driver_command(&self, cluster: Cluster) -> Option<Vec<String>> {
        let (name, _) = driver(cluster)?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let budget = self.plan.sweep.budget;
        let mut words = vec![
            text(&self.folder.file(name)),
            "--program".into(),
            text(&self.program),
            "--sweep".into(),
            text(self.folder.path()),
            "--threads".into(),
            self.threads.unwrap_or(1).to_string(),
        ];
        let mut option =
            |name: &str, value: Option<String>| words.extend(value.into_iter().flat_map(|value| [name.into(), value]));
        option("--gpus", (self.gpus > 0).then(|| self.gpus.to_string()));
        option("--memory-mib", budget.memory_mib.map(|mib| mib.to_string()));
        option("--workers", self.workers.map(|workers| workers.to_string()));
        option("--address", self.address.clone());
        Some(words)
    }

    /// Writes the driver and runs it to its end. The driver reports its progress on standard error.
    ///
    /// # Errors
    /// There is no `python3`, or the driver ends before every trial has.
    pub fn drive(&self, cluster: Cluster) -> Result<(), SweepError> {
        let (Some(words), Some(script)) = (self.driver_command(cluster), driver(cluster)) else {
            return Ok(());
        };
        for (name, text) in [ROUNDS, script] {
            let path = self.folder.file(name);
            replace_shared(&path, text.as_bytes()).at(&path)?;
        }
        let mut command = Command::new("python3");
        // Standard output is the tables'.
        command.args(words).stdin(Stdio::null()).stdout(std::io::stderr());
        let status = started(
            command.status(),
            "python3",
            "install Python 3 and, with its pip, ray or hyperqueue",
        )?;
        if status.success() {
            return Ok(());
        }
        let driver = self.folder.file(script.0);
        Err(SweepError::Refused(format!(
            "{} ended before the sweep ({status}); repeat the command to play what is left",
            driver.display()
        )))
    }
}

/// Its file's name, and its text.
const fn driver(cluster: Cluster) -> Option<(&'static str, &'static str)> {
    match cluster {
        Cluster::Slurm => None,
        Cluster::Ray => Some(("ray_driver.py", include_str!("drivers/ray_driver.py"))),
        Cluster::Hyperqueue => Some(("hyperqueue_driver.py", include_str!("drivers/hyperqueue_driver.py"))),
    }
}

fn started<T>(outcome: std::io::Result<T>, program: &str, advice: &str) -> Result<T, SweepError> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(SweepError::Refused(format!(
            "{program} isn't on the PATH; {advice}; the sweep is planned, but nothing was submitted"
        ))),
        outcome => Ok(outcome.at(Path::new(program))?),
    }
}

/// The text as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
