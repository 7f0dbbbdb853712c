//! Files that were about to become others when the process that wrote them was killed.

use std::path::Path;
use std::time::Duration;

use super::folder::{SweepFolder, names_in};
use super::place::Place;
use super::process::{Mark, Worker};
use crate::health::FileError;
use crate::storage;

/// Removes what processes that are gone have left of files that they were about to write: those that are known to have
/// ended, and those of other machines without a sign of life for `expiry`.
///
/// # Errors
/// A folder that cannot be read or written.
pub fn tidy(sweep: &SweepFolder, expiry: Duration) -> Result<(), FileError> {
    let (this, now) = (Worker::this().mark(), sweep.now()?);
    let is_old = |path: &Path| {
        let modified = path.metadata().and_then(|metadata| metadata.modified());
        modified.is_ok_and(|modified| now.duration_since(modified).is_ok_and(|silent| silent > expiry))
    };
    for folder in [sweep.path().to_path_buf(), sweep.leases(), sweep.results()] {
        for name in names_in(&folder)? {
            let path = folder.join(&name);
            if Mark::of(&name).is_some_and(|mark| mark.0.is_gone(&this.0) || mark != this && is_old(&path)) {
                // Another worker may be quicker; and what stays does no harm.
                let _ = storage::remove_file(&path);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
