//! Controllers on disk: a folder that appears whole or not at all, and is read once.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::actions::PolicyError;
use crate::files::read_ron;
use crate::storage::replace_folder;

/// The file that a controller without a network saves.
pub const CONTROLLER_FILE: &str = "controller.ron";
const FORMAT: u32 = 1;

/// The files of a saved controller, read into memory together: a later load gets what was there then, even if the folder
/// has changed. Clones share the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedFolder {
    path: PathBuf,
    files: Arc<BTreeMap<String, Vec<u8>>>,
}

impl SavedFolder {
    /// Reads all files of the folder at `path`.
    ///
    /// # Errors
    /// `Storage`, if the folder or one of its files cannot be read.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let failed = |error: io::Error| storage(path, &error);
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            if file.is_file() {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                files.insert(name, fs::read(&file).map_err(|error| storage(&file, &error))?);
            }
        }
        Ok(Self {
            path: path.into(),
            files: Arc::new(files),
        })
    }

    /// The path it was read from, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content of one of its files.
    ///
    /// # Errors
    /// `Storage`, if there was no file of that name.
    pub fn file(&self, name: &str) -> Result<&[u8], PolicyError> {
        let content = self.files.get(name).map(Vec::as_slice);
        content.ok_or_else(|| storage(&self.path.join(name), &"there is no such file"))
    }

    /// The content of one of its files, in RON.
    ///
    /// # Errors
    /// `Storage`, if there was no file of that name, or its content doesn't match.
    pub(super) fn ron<T: DeserializeOwned>(&self, name: &str) -> Result<T, PolicyError> {
        let at = |why: &dyn std::fmt::Display| storage(&self.path.join(name), why);
        let text = std::str::from_utf8(self.file(name)?).map_err(|error| at(&error))?;
        read_ron(text).map_err(|error| at(&error))
    }
}

/// Identity of a controller without a network.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedController {
    format: u32,
    name: String,
    /// Identity of its behaviour, beyond its name.
    fingerprint: Option<String>,
}

/// Writes a controller's name and fingerprint into `folder`.
///
/// # Errors
/// `Storage`, if the folder cannot be written.
pub fn save_controller(folder: &Path, name: &str, fingerprint: Option<&str>) -> Result<(), PolicyError> {
    let saved = SavedController {
        format: FORMAT,
        name: name.to_string(),
        fingerprint: fingerprint.map(String::from),
    };
    write_folder(folder, &[(CONTROLLER_FILE, to_ron(folder, &saved)?.as_bytes())])
}

/// Checks that the saved controller is this one.
///
/// # Errors
/// `Storage`, if it can't be read. `IncompatiblePolicy`, if it is another controller.
pub fn check_controller(folder: &SavedFolder, name: &str, fingerprint: Option<&str>) -> Result<(), PolicyError> {
    let saved: SavedController = folder.ron(CONTROLLER_FILE)?;
    let mut diffs = Differences::default();
    diffs.compare("format", &saved.format, &FORMAT);
    diffs.compare("controller", &saved.name.as_str(), &name);
    diffs.compare("fingerprint", &saved.fingerprint.as_deref(), &fingerprint);
    diffs.finish(folder.path())
}

/// Everything in which a saved thing differs from the running one.
#[derive(Debug, Default)]
pub struct Differences(Vec<String>);

impl Differences {
    pub fn compare<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, saved: &T, running: &T) {
        if saved != running {
            self.0.push(format!("{what}: saved {saved:?}, running {running:?}"));
        }
    }

    pub fn note(&mut self, difference: String) {
        self.0.push(difference);
    }

    /// # Errors
    /// `IncompatiblePolicy` with all of them.
    pub fn finish(self, folder: &Path) -> Result<(), PolicyError> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(PolicyError::IncompatiblePolicy {
            folder: folder.display().to_string(),
            diffs: self.0,
        })
    }
}

pub fn to_ron(path: &Path, value: &impl Serialize) -> Result<String, PolicyError> {
    let layout = ron::ser::PrettyConfig::new().struct_names(false).depth_limit(2);
    ron::ser::to_string_pretty(value, layout).map_err(|error| storage(path, &error))
}

pub fn storage(path: &Path, why: &dyn std::fmt::Display) -> PolicyError {
    PolicyError::Storage {
        path: path.display().to_string(),
        why: why.to_string(),
    }
}

/// Writes files into a folder next to `folder`, then puts it in its place. The previous folder is removed last.
pub fn write_folder(folder: &Path, files: &[(&str, &[u8])]) -> Result<(), PolicyError> {
    replace_folder(folder, files).map_err(|error| storage(folder, &error))
}

#[cfg(test)]
mod tests;
