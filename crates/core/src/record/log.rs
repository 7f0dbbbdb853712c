//! The log on disk: `log.txt` of the run directory, or a file that the user named.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::health::{AtPath, FileError};
use crate::storage::File;

const FILE_NAME: &str = "log.txt";

/// A log file that may not have a place yet: lines wait until the run directory exists. Clones write to the same file.
#[derive(Clone, Debug, Default)]
pub struct LogFile(Arc<Mutex<Target>>);

#[derive(Debug)]
enum Target {
    Waiting(Vec<u8>),
    Open(File),
}

impl Default for Target {
    fn default() -> Self {
        Self::Waiting(Vec::new())
    }
}

impl LogFile {
    /// Appends to the file at `path`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn at(path: &Path) -> std::io::Result<Self> {
        let file = File::append_to_any(path)?;
        Ok(Self(Arc::new(Mutex::new(Target::Open(file)))))
    }

    /// Continues the log in `log.txt` of a run directory, unless it has a file already.
    ///
    /// # Errors
    /// If the file cannot be created or written.
    pub fn move_into(&self, directory: &Path) -> Result<(), FileError> {
        let mut target = self.lock();
        if let Target::Waiting(lines) = &*target {
            let path = directory.join(FILE_NAME);
            let mut file = File::append_or_create(&path).at(&path)?;
            file.write_all(lines).at(&path)?;
            *target = Target::Open(file);
        }
        Ok(())
    }

    /// A panic while a line is written leaves the line short, nothing else.
    fn lock(&self) -> MutexGuard<'_, Target> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut *self.lock() {
            Target::Waiting(lines) => lines.write(bytes),
            Target::Open(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
