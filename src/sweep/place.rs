//! The meeting place of a sweep's workers: the demands of the protocol of leases and results on a shared folder, on time and on
//! processes. Of a sweep on disk that is its [`SweepFolder`]; tests play the protocol in simulated places, which fail.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use super::folder::{SweepFolder, names_in, replace_shared};
use super::process::Worker;
use crate::health::{AtPath, FileError};
use crate::storage::{self, File};

/// A folder of a sweep in which names count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shelf {
    /// The leases: which worker plays which trial.
    Leases,
    /// The ends of trials.
    Results,
}

/// A shared folder, its clock, and the processes of this machine. Errors are those of a file system.
pub trait Place: Sync {
    /// Path of a file, for messages.
    fn path_of(&self, shelf: Shelf, name: &str) -> PathBuf;
    /// The file system's own time. The clocks of different machines are never compared.
    fn now(&self) -> Result<SystemTime, FileError>;
    /// All names on a shelf; another machine may see them later.
    fn names(&self, shelf: Shelf) -> Result<BTreeSet<String>, FileError>;
    /// Returns whether a file is there, asked by its name.
    fn has(&self, shelf: Shelf, name: &str) -> Result<bool, FileError>;
    /// The content of a file.
    fn read(&self, shelf: Shelf, name: &str) -> Result<Vec<u8>, FileError>;
    /// The time at which a file was last written, by the file system's clock.
    fn modified(&self, shelf: Shelf, name: &str) -> Result<SystemTime, FileError>;
    /// Creates an empty file; false where there is one already. Of any number of callers one succeeds.
    fn create(&self, shelf: Shelf, name: &str) -> Result<bool, FileError>;
    /// Writes a file in place, so that it is never absent: a reader may meet half of it.
    fn write(&self, shelf: Shelf, name: &str, content: &[u8]) -> Result<(), FileError>;
    /// Makes a file as old as can be.
    fn age(&self, shelf: Shelf, name: &str) -> Result<(), FileError>;
    /// Writes a file for good: it is there whole or not at all, and the last of several writers counts.
    fn replace(&self, shelf: Shelf, name: &str, content: &[u8]) -> Result<(), FileError>;
    /// Gives a file another name; false where it is gone.
    fn rename(&self, shelf: Shelf, from: &str, to: &str) -> Result<bool, FileError>;
    /// This process.
    fn this(&self) -> Worker;
    /// Returns whether a process is known to have ended.
    fn is_gone(&self, worker: &Worker) -> bool;
    /// Time that has passed for this process.
    fn elapsed(&self) -> Duration;
    /// Lets time pass.
    fn pause(&self, time: Duration);
}

impl Place for SweepFolder {
    fn path_of(&self, shelf: Shelf, name: &str) -> PathBuf {
        match shelf {
            Shelf::Leases => self.file("leases").join(name),
            Shelf::Results => self.file("results").join(name),
        }
    }

    fn now(&self) -> Result<SystemTime, FileError> {
        let path = self.file("leases").join(format!(".clock.{}", Worker::this().mark()));
        let file = File::create(&path).at(&path)?;
        let now = file.metadata().and_then(|metadata| metadata.modified()).at(&path)?;
        drop(file);
        // Another thread of this process may have been quicker.
        let _ = storage::remove_file(&path);
        Ok(now)
    }

    fn names(&self, shelf: Shelf) -> Result<BTreeSet<String>, FileError> {
        names_in(&self.path_of(shelf, ""))
    }

    fn has(&self, shelf: Shelf, name: &str) -> Result<bool, FileError> {
        let path = self.path_of(shelf, name);
        path.try_exists().at(&path)
    }

    fn read(&self, shelf: Shelf, name: &str) -> Result<Vec<u8>, FileError> {
        let path = self.path_of(shelf, name);
        crate::files::read(&path).at(&path)
    }

    fn modified(&self, shelf: Shelf, name: &str) -> Result<SystemTime, FileError> {
        let path = self.path_of(shelf, name);
        path.metadata().and_then(|metadata| metadata.modified()).at(&path)
    }

    fn create(&self, shelf: Shelf, name: &str) -> Result<bool, FileError> {
        let path = self.path_of(shelf, name);
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            created => created.map(|_| true).at(&path),
        }
    }

    fn write(&self, shelf: Shelf, name: &str, content: &[u8]) -> Result<(), FileError> {
        let path = self.path_of(shelf, name);
        let mut file = File::create(&path).at(&path)?;
        file.write_all(content).at(&path)
    }

    fn age(&self, shelf: Shelf, name: &str) -> Result<(), FileError> {
        let path = self.path_of(shelf, name);
        let file = File::change(&path).at(&path)?;
        file.set_modified(SystemTime::UNIX_EPOCH).at(&path)
    }

    fn replace(&self, shelf: Shelf, name: &str, content: &[u8]) -> Result<(), FileError> {
        let path = self.path_of(shelf, name);
        replace_shared(&path, content).at(&path)
    }

    fn rename(&self, shelf: Shelf, from: &str, to: &str) -> Result<bool, FileError> {
        let path = self.path_of(shelf, from);
        match storage::rename(&path, &self.path_of(shelf, to)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            renamed => renamed.map(|()| true).at(&path),
        }
    }

    fn this(&self) -> Worker {
        Worker::this()
    }

    fn is_gone(&self, worker: &Worker) -> bool {
        worker.is_gone(&Worker::this())
    }

    fn elapsed(&self) -> Duration {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGAN.elapsed()
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Removes what processes that are gone have left of files that they were about to write: those that are known to have
/// ended, and those of other machines without a sign of life for `expiry`.
///
/// # Errors
/// A folder that cannot be read or written.
pub fn tidy(sweep: &SweepFolder, expiry: Duration) -> Result<(), FileError> {
    let (this, now) = (Worker::this().hashed(), sweep.now()?);
    let is_old = |path: &Path| {
        let modified = path.metadata().and_then(|metadata| metadata.modified());
        modified.is_ok_and(|modified| now.duration_since(modified).is_ok_and(|silent| silent > expiry))
    };
    for folder in [sweep.path().to_path_buf(), sweep.file("leases"), sweep.file("results")] {
        for name in names_in(&folder)? {
            let path = folder.join(&name);
            if Worker::marked(&name).is_some_and(|owner| owner.is_gone(&this) || owner != this && is_old(&path)) {
                // Another worker may be quicker, and a remaining file does no harm.
                let _ = storage::remove_file(&path);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
