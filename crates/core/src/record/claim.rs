//! A run is played by one process at a time.

use std::fs::TryLockError;
use std::io::{Error, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

use bevy_ecs::prelude::Resource;

use crate::health::{AtPath, FileError};
use crate::storage::{self, ErrorClass};

/// Keeps other processes from the run directory for as long as it, or a clone of it, lives: a file, locked where the file
/// system has locks.
#[derive(Resource, Clone, Debug)]
pub struct RunClaim(Arc<storage::File>);

impl RunClaim {
    /// Claims what a file represents, until the claim is dropped or the process ends in any way. On a file system without
    /// locks nothing keeps others away: a warning says so.
    ///
    /// # Errors
    /// If another process has it, or it cannot be opened.
    pub(crate) fn of(path: PathBuf) -> Result<Self, FileError> {
        let file = storage::File::change(&path).at(&path)?;
        let locked = match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Error::other(
                "another process is playing this run; wait for it or stop it",
            )),
            Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                tracing::warn!(
                    "{}: the file system has no locks ({error}); nothing prevents a second process from playing this \
                     run: make sure that none does",
                    path.display()
                );
                Ok(())
            }
            Err(TryLockError::Error(error)) => Err(error),
            Ok(()) => Ok(()),
        };
        locked.at(&path)?;
        Ok(Self(Arc::new(file)))
    }

    /// Returns whether the run directory is still the one that was claimed: not deleted, moved or replaced by another.
    pub fn is_in_place(&self) -> bool {
        self.0.is_in_place()
    }
}

/// Returns whether the file system, rather than another process, refuses a lock: as Lustre and FUSE may, and NFS without
/// its lock daemon.
fn has_no_locks(error: &Error) -> bool {
    error.kind() == ErrorKind::Unsupported || error.raw_os_error().and_then(ErrorClass::of) == Some(ErrorClass::Locks)
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
