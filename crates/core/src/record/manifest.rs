//! `manifest.json`: what a run was made of, written once before round 0 and never edited.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use bevy_ecs::prelude::Resource;
use serde::Serialize;

use super::directory::{MANIFEST_FILE, RunDirectory, RunDirectoryError};
use super::files::write_json;
use crate::health::AtPath;
use crate::kernels::kernel_levels;
use crate::telemetry::{BigInteger, DatasetInfo, RunStarted, Timestamp};
use crate::torch::{Gpu, libtorch_version};

/// Environment variables that may change how a run behaves; no others are recorded.
const RECORDED_VARIABLES: [&str; 5] = [
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "PYTORCH_ALLOC_CONF",
    "OMP_NUM_THREADS",
    "RUST_LOG",
];
const RECORDED_PREFIX: &str = "SIMIC_ENGINE_";

/// Facts about the build of the program. The program itself inserts the resource, as any plugin of an application may.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Build {
    /// Version of the engine.
    pub engine: &'static str,
    /// Commit of the sources; `None` outside a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_commit: Option<&'static str>,
    /// Hash of the differences from that commit; absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_diff: Option<&'static str>,
    /// True if anything of the engine differed, files that git does not know among it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_dirty: Option<bool>,
    /// Compiler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rustc: Option<&'static str>,
    /// Target triple.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<&'static str>,
    /// `debug` or `release`.
    pub profile: &'static str,
}

impl Build {
    /// Facts that the engine knows without the program.
    pub const UNKNOWN: Self = Self {
        engine: env!("CARGO_PKG_VERSION"),
        git_commit: None,
        git_diff: None,
        git_dirty: None,
        rustc: None,
        target: None,
        profile: if cfg!(debug_assertions) { "debug" } else { "release" },
    };
}

impl Default for Build {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

/// The tensor libraries in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Libraries {
    /// Version of the bindings, as Cargo.toml pins it.
    pub tch: &'static str,
    /// Version of libtorch, as the loaded library says.
    pub libtorch: String,
}

/// The computer; neither host nor user is named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Model; `None` where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory of the machine; `None` where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ram_bytes: Option<u64>,
    /// Operating system.
    pub os: String,
    /// The engine's kernels that this CPU computes with, by their instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<&'static str>,
    /// CUDA devices of the run, as scenarios name them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gpus: BTreeMap<String, Gpu>,
}

impl Machine {
    /// Facts from the operating system; those that it does not give are absent.
    pub fn current() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            cpu: value_of(&read("/proc/cpuinfo"), "model name", ':'),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            ram_bytes: Self::ram_bytes(),
            os: value_of(&read("/etc/os-release"), "PRETTY_NAME", '=')
                .map_or_else(|| std::env::consts::OS.into(), |name| name.replace('"', "")),
            kernels: kernel_levels()
                .into_iter()
                .find(|level| level.is_available)
                .map(|level| level.name),
            gpus: BTreeMap::new(),
        }
    }

    /// Memory of this machine; `None` where the operating system does not say.
    pub fn ram_bytes() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let kibibytes: u64 = value_of(&text, "MemTotal", ':')?.strip_suffix(" kB")?.parse().ok()?;
        Some(kibibytes * 1024)
    }
}

/// The first value of `key` in lines of `key{separator}value`.
fn value_of(text: &str, key: &str, separator: char) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim().to_owned())
}

/// The content of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manifest {
    /// Name of the folder.
    pub run_id: String,
    /// The time at which the run began.
    pub created: Timestamp,
    /// The command line as typed.
    pub command_line: Vec<String>,
    /// The path as given; absent for a built-in scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario_path: Option<String>,
    /// Absolute; the scenario's relative paths start there. For a built-in scenario the folder in which the run was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario_folder: Option<String>,
    /// Words to find the run by.
    pub tags: Vec<String>,
    /// blake3 of `resolved.ron`.
    pub scenario_hash: String,
    /// Seed of every random draw.
    pub seed: BigInteger,
    /// The build of the binary.
    pub build: Build,
    /// Versions that numbers depend on.
    pub libraries: Libraries,
    /// The machine that the run was played on.
    pub machine: Machine,
    /// Envs that are worked on at once.
    pub env_workers: usize,
    /// Environment variables that may change a run.
    pub environment: BTreeMap<String, String>,
    /// The data set of the training.
    pub dataset: DatasetInfo,
    /// Versions by name.
    pub plugins: BTreeMap<String, String>,
}

impl Manifest {
    /// The manifest from the process itself and the event of the run's start. The caller fills in the user's words, the build,
    /// plugins, CUDA devices and the number of workers.
    pub fn new(directory: &RunDirectory, started: &RunStarted) -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.to_string_lossy().into_owned())));
        Self {
            run_id: directory.run_id().into(),
            created: Timestamp::now(),
            command_line: std::env::args_os()
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect(),
            scenario_path: None,
            scenario_folder: None,
            tags: Vec::new(),
            scenario_hash: directory.scenario_hash().into(),
            seed: started.seed,
            build: Build::UNKNOWN,
            libraries: Libraries {
                tch: "0.24",
                libtorch: libtorch_version(),
            },
            machine: Machine::current(),
            env_workers: 1,
            environment: recorded_environment(variables),
            dataset: started.dataset.clone(),
            plugins: BTreeMap::new(),
        }
    }

    /// Writes `manifest.json` into the run directory, in one step.
    ///
    /// # Errors
    /// If the file exists already or cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), RunDirectoryError> {
        let path = directory.join(MANIFEST_FILE);
        if path.exists() {
            Err::<(), _>(ErrorKind::AlreadyExists).at(&path)?;
        }
        Ok(write_json(&path, self).at(&path)?)
    }
}

fn recorded_environment(variables: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    variables
        .filter(|(key, _)| RECORDED_VARIABLES.contains(&key.as_str()) || key.starts_with(RECORDED_PREFIX))
        .collect()
}

#[cfg(test)]
mod tests;
