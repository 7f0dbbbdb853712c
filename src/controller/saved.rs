//! Controllers on disk: a folder that appears whole or not at all.

use std::fs;
use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::controller::error::PolicyError;
use crate::files::{self, sync_folder, sync_folder_of, write_synced};

/// What a controller without a network saves.
const CONTROLLER_FILE: &str = "controller.ron";
const FORMAT: u32 = 1;

/// Identity and state of a controller without a network.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedController<S> {
    format: u32,
    name: String,
    /// Of what it will do, beyond its name.
    fingerprint: Option<String>,
    state: S,
}

/// Writes a controller's name, fingerprint and state into `folder`.
///
/// # Errors
/// `Storage`, if the folder cannot be written.
pub fn save_controller(
    folder: &Path,
    name: &str,
    fingerprint: Option<&str>,
    state: &impl Serialize,
) -> Result<(), PolicyError> {
    let saved = SavedController {
        format: FORMAT,
        name: name.to_string(),
        fingerprint: fingerprint.map(String::from),
        state,
    };
    write_folder(folder, &[(CONTROLLER_FILE, to_ron(folder, &saved)?.as_bytes())])
}

/// The state of the controller that `folder` holds.
///
/// # Errors
/// `Storage`, if it cannot be read; `IncompatiblePolicy`, if it is another controller's.
pub fn load_controller<S: DeserializeOwned>(
    folder: &Path,
    name: &str,
    fingerprint: Option<&str>,
) -> Result<S, PolicyError> {
    let saved: SavedController<S> = read_ron(&folder.join(CONTROLLER_FILE))?;
    let mut diffs = Differences::default();
    diffs.compare("format", &saved.format, &FORMAT);
    diffs.compare("controller", &saved.name.as_str(), &name);
    diffs.compare("fingerprint", &saved.fingerprint.as_deref(), &fingerprint);
    diffs.finish(folder)?;
    Ok(saved.state)
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

/// Of some bytes, in lower-case hexadecimal.
pub fn sha256(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

pub fn to_ron(path: &Path, value: &impl Serialize) -> Result<String, PolicyError> {
    let layout = ron::ser::PrettyConfig::new().struct_names(false).depth_limit(2);
    ron::ser::to_string_pretty(value, layout).map_err(|error| storage(path, &error))
}

pub fn read_ron<T: DeserializeOwned>(path: &Path) -> Result<T, PolicyError> {
    let text = fs::read_to_string(path).map_err(|error| storage(path, &error))?;
    files::read_ron(&text).map_err(|error| storage(path, &error))
}

pub fn storage(path: &Path, why: &dyn std::fmt::Display) -> PolicyError {
    PolicyError::Storage {
        path: path.display().to_string(),
        why: why.to_string(),
    }
}

/// Writes files into a folder beside `folder`, then puts it in its place; what stood there before goes last.
pub fn write_folder(folder: &Path, files: &[(&str, &[u8])]) -> Result<(), PolicyError> {
    let beside = |suffix: &str| {
        let mut name = folder.file_name().unwrap_or_default().to_os_string();
        name.push(suffix);
        folder.with_file_name(name)
    };
    let (fresh, old) = (beside(".new"), beside(".old"));
    let write = || -> io::Result<()> {
        for leftover in [&fresh, &old] {
            if leftover.exists() {
                fs::remove_dir_all(leftover)?;
            }
        }
        fs::create_dir_all(&fresh)?;
        for (name, content) in files {
            write_synced(&fresh.join(name), content)?;
        }
        // A power cut after the rename must not leave a name without its content.
        sync_folder(&fresh)?;
        if folder.exists() {
            fs::rename(folder, &old)?;
        }
        fs::rename(&fresh, folder)?;
        sync_folder_of(folder)?;
        if old.exists() {
            fs::remove_dir_all(&old)?;
        }
        Ok(())
    };
    write().map_err(|error| storage(folder, &error))
}

#[cfg(test)]
mod tests;
