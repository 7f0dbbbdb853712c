//! Whether training data can stay in their files, as far as the files' first bytes show: before any of them is read.

use std::path::Path;

use super::DataError;
use super::formats::idx;
use super::locate::{find, open_unpacked};
use crate::scenario::DataSource;

/// Refuses to stream what has to be unpacked first: all of it would be in memory by then. Files that are not there, and formats
/// without records, are reported elsewhere.
///
/// # Errors
/// That a file is packed, or cannot be read.
pub fn refuse_packed(source: &DataSource, scenario_dir: Option<&Path>) -> Result<(), DataError> {
    let name = match source {
        DataSource::Cifar10 { path } | DataSource::Cifar100 { path } | DataSource::IdxFolder { path, .. } => path,
        DataSource::Idx { images, .. } | DataSource::Npy { images, .. } => images,
        DataSource::Text(text) => &text.path,
        DataSource::TokenFiles(files) => &files.train,
        _ => return Ok(()),
    };
    let Ok(place) = find(name, scenario_dir, None) else {
        return Ok(());
    };
    let file = match source {
        DataSource::IdxFolder { .. } => idx::training_images(&place),
        _ => place.is_file().then_some(place),
    };
    // One file of CIFAR is an archive, packed or not.
    let is_archive = matches!(source, DataSource::Cifar10 { .. } | DataSource::Cifar100 { .. });
    match file {
        Some(file) if is_archive || open_unpacked(&file)?.is_none() => {
            let file = file.display();
            Err(DataError::new(
                format!(
                    "data.residency: stream is not possible, as {file} is packed: no part of it can be read without all before it"
                ),
                "unpack it, or write data.residency: auto, device or host",
            ))
        }
        _ => Ok(()),
    }
}
