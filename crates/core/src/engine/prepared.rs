//! From a scenario file to a scenario that can run, before anything is touched.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::env::Experiment;
use crate::health::{AtPath, FileError};
use crate::host::SlotLayout;
use crate::record::{RunDirectoryError, ScenarioFile, scenario_folder};
use crate::scenario::{self, Catalog, Input, Loaded, Override, Report};
use crate::schema::NameError;
use crate::training::with_environment;
use crate::validation::max_configurations;

/// Most bytes of a scenario file: a larger file was named by mistake.
pub const LARGEST_TEXT: u64 = 16 << 20;

/// A checked scenario with the file it came from.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The scenario with its task, slots, warnings and the origin of every value.
    pub loaded: Loaded,
    /// The text that it was read from.
    pub file: ScenarioFile,
    /// The overrides that were laid over it.
    pub overrides: Vec<Override>,
}

/// The reason why an engine cannot be made: nothing has run, and nothing was written. The message says what to
/// change, mostly in the scenario.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Everything that is wrong with the scenario, each problem with its line, its field and what would be valid.
    #[error("{0}")]
    Scenario(Report),
    /// The scenario file cannot be read: it does not exist, or may not be opened.
    #[error("cannot read the scenario {0}")]
    Unreadable(#[from] FileError),
    /// The scenario file is not UTF-8.
    #[error("the scenario {}:{line}:{column} is not UTF-8 text; save it as UTF-8", path.display())]
    NotText {
        /// As it was given.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// The scenario file is something else, by its size.
    #[error("cannot read the scenario {}: it is larger than {} MiB, the limit of a scenario", .0.display(), LARGEST_TEXT >> 20)]
    TooLarge(PathBuf),
    /// The scenario needs more memory than there is: the message says how many envs would fit.
    #[error("the scenario {label}: {shortage}")]
    Memory {
        /// The scenario's name in messages.
        label: String,
        /// The needed and the available memory.
        shortage: String,
    },
    /// The scenario file is a run's copy, and what the run says about the original can't be read.
    #[error(transparent)]
    Run(#[from] RunDirectoryError),
    /// A plugin registers something under a name that is taken, or something that scenarios can't refer to.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The environment says what it can't say.
    #[error("{0}")]
    Environment(String),
}

impl Prepared {
    /// Checks a scenario text. Problems name it by `label`. Its relative paths start in the working directory.
    ///
    /// # Errors
    /// Every problem in the scenario.
    pub fn from_ron(label: &str, text: &str, overrides: &[Override], catalog: &Catalog) -> Result<Self, SetupError> {
        Self::new(label, ScenarioFile::of_text(text), overrides, catalog)
    }

    /// Checks a scenario file that has been read. Problems name it by `label`. Settings of the environment override `overrides`.
    ///
    /// # Errors
    /// Every problem in the scenario, or an environment that can't be understood.
    pub fn new(label: &str, file: ScenarioFile, overrides: &[Override], catalog: &Catalog) -> Result<Self, SetupError> {
        let overrides = with_environment(overrides).map_err(SetupError::Environment)?;
        Self::past(label, file, &overrides, catalog)
    }

    /// As [`Self::new`], of what was played before: the environment says nothing about that.
    ///
    /// # Errors
    /// Every problem in the scenario.
    pub fn past(label: &str, file: ScenarioFile, overrides: &[Override], names: &Catalog) -> Result<Self, SetupError> {
        let text = &file.text;
        let input = Input { label, text, overrides };
        let loaded = scenario::load_in(&input, file.folder.as_deref(), names).map_err(SetupError::Scenario)?;
        Ok(Self {
            loaded,
            file,
            overrides: overrides.to_vec(),
        })
    }

    /// As [`Self::from_ron`], for bytes that may not be text.
    ///
    /// # Errors
    /// Bytes that aren't UTF-8, or every problem in the scenario.
    pub fn from_bytes(
        label: &str,
        bytes: Vec<u8>,
        overrides: &[Override],
        catalog: &Catalog,
    ) -> Result<Self, SetupError> {
        Self::from_ron(label, &text_of(Path::new(label), bytes)?, overrides, catalog)
    }

    /// Reads and checks a scenario file.
    ///
    /// # Errors
    /// A file that can't be read, or every problem in the scenario.
    pub fn load(path: &Path, overrides: &[Override], catalog: &Catalog) -> Result<Self, SetupError> {
        Self::new(&path.display().to_string(), read_scenario(path)?, overrides, catalog)
    }

    /// The scenario's name in messages: its file, or its name.
    pub fn label(&self) -> String {
        let file = self.file.path.as_ref();
        file.map_or_else(|| self.loaded.scenario.name.clone(), |path| path.display().to_string())
    }

    /// The experiment that the engine plays, from the first round on.
    pub fn experiment(&self, threads: usize) -> Experiment {
        let Loaded {
            scenario,
            task,
            host,
            reward,
            slots,
            ..
        } = &self.loaded;
        let layout = SlotLayout::new(&host.injections, slots);
        Experiment {
            max_configurations: max_configurations(&scenario.attribution, layout.len()),
            data: None,
            folder: self.file.folder.clone(),
            threads,
            // A run that learns from recordings doesn't play any envs.
            envs: match scenario.learner.is_offline() {
                false => (0..scenario.run.n_envs).collect(),
                true => Vec::new(),
            },
            rounds: 0..scenario.run.rounds,
            scenario: scenario.clone(),
            task: task.clone(),
            reward: *reward,
            layout,
        }
    }
}

/// A scenario file. If it is a run's copy, its relative paths start where those of the original do.
///
/// # Errors
/// A file that can't be read, or a run that doesn't say where its original was.
pub fn read_scenario(path: &Path) -> Result<ScenarioFile, SetupError> {
    Ok(ScenarioFile {
        text: read_text(path)?,
        folder: scenario_folder(path)?,
        path: Some(path.into()),
    })
}

/// The text of a scenario file, or of another file in the same language.
///
/// # Errors
/// A file that can't be read, is missing, is too large, or isn't text.
pub fn read_text(path: &Path) -> Result<String, SetupError> {
    let mut bytes = Vec::new();
    let file = crate::files::open(path).at(path)?;
    file.take(LARGEST_TEXT + 1).read_to_end(&mut bytes).at(path)?;
    text_of(path, bytes)
}

fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, SetupError> {
    if bytes.len() as u64 > LARGEST_TEXT {
        return Err(SetupError::TooLarge(path.into()));
    }
    String::from_utf8(bytes).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line_start = sound
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |newline| newline + 1);
        SetupError::NotText {
            path: path.into(),
            line: sound.iter().filter(|&&byte| byte == b'\n').count() + 1,
            column: String::from_utf8_lossy(&sound[line_start..]).chars().count() + 1,
        }
    })
}

#[cfg(test)]
mod tests;
