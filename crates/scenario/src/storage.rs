//! Everything that runs and sweeps do to their files: create, write, synchronise, rename, link, lock and remove. What is
//! written here *synced* survives a power cut: it is on disk when the call returns, and so is its name.
//!
//! One place, so that tests can let any of these operations fail, by the feature `testing`. Of reading it has the names
//! in a folder, where an error must not be taken for there being none.

#[cfg(any(test, feature = "testing"))]
mod fixtures;
mod errors;

use std::ffi::OsString;
use std::fs::{self, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::files::not_regular;
pub use errors::ErrorClass;
#[cfg(any(test, feature = "testing"))]
pub use fixtures::{Fault, StorageFaults};

/// Code for tests that observe or disturb an operation; nothing in a build of the engine.
macro_rules! in_tests {
    ($($code:tt)*) => {
        #[cfg(any(test, feature = "testing"))]
        {
            $($code)*
        }
    };
}

/// A file that is written.
#[derive(Debug)]
pub struct File {
    file: fs::File,
    path: PathBuf,
}

impl File {
    /// A file at `path`, empty; one that is there loses what it holds.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::make(path, OpenOptions::new().write(true).create(true).truncate(true))
    }

    /// A file that must not exist yet.
    ///
    /// # Errors
    /// If it exists or cannot be created.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        Self::make(path, OpenOptions::new().append(true).create_new(true))
    }

    /// A file that grows; it is created if there is none.
    ///
    /// # Errors
    /// If it can neither be opened nor created.
    pub fn append_or_create(path: &Path) -> io::Result<Self> {
        match Self::append(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Self::create_new(path),
            opened => opened,
        }
    }

    /// [`Self::append_or_create`] of what a user names, which may also be a link or a device.
    ///
    /// # Errors
    /// If it can neither be opened nor created.
    pub fn append_to_any(path: &Path) -> io::Result<Self> {
        Self::open(path, OpenOptions::new().append(true).create(true))
    }

    /// A file that is there and grows.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn append(path: &Path) -> io::Result<Self> {
        Self::open_own(path, OpenOptions::new().append(true))
    }

    /// A file that is there, to be locked, cut or touched.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn change(path: &Path) -> io::Result<Self> {
        // NFS locks only what is open for writing.
        Self::open_own(path, OpenOptions::new().read(true).write(true))
    }

    /// In a folder that came from elsewhere a link may lead to any file, and a pipe may never be read: nothing is written there.
    fn open_own(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        match path.symlink_metadata() {
            Ok(there) if !there.is_file() => Err(not_regular()),
            _ => Self::open(path, options),
        }
    }

    fn open(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        Ok(Self {
            file: options.open(path)?,
            path: path.into(),
        })
    }

    fn make(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        in_tests!(fixtures::creates(path)?;);
        Self::open_own(path, options)
    }

    /// Cuts the file, or fills it with zeros, to `length` bytes.
    ///
    /// # Errors
    /// If it cannot be changed.
    pub fn set_len(&self, length: u64) -> io::Result<()> {
        in_tests!(fixtures::resizes(&self.path, &self.file)?;);
        self.file.set_len(length)
    }

    /// Writes `bytes`, and says how many of them the file has taken: all, unless there is an error.
    pub fn write_most(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < bytes.len() {
            match self.write(&bytes[written..]) {
                Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    /// Waits until the device has everything that was written. After an error it is not known what it has, even if a later
    /// call succeeds: Linux then forgets which pages were not written.
    ///
    /// # Errors
    /// If it cannot be synchronised.
    pub fn sync(&self) -> io::Result<()> {
        in_tests!(fixtures::does(fixtures::Operation::Sync, &self.path)?;);
        self.file.sync_all()?;
        in_tests!(fixtures::has_synced(&self.path, &self.file)?;);
        Ok(())
    }

    /// Locks the file for this process, or says who does not let it.
    ///
    /// # Errors
    /// `WouldBlock` if another process has it; what else the file system says.
    pub fn try_lock(&self) -> Result<(), TryLockError> {
        in_tests!(fixtures::does(fixtures::Operation::Lock, &self.path).map_err(TryLockError::Error)?;);
        self.file.try_lock()
    }

    /// Sets the time of its last change.
    ///
    /// # Errors
    /// If it cannot be set.
    pub fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        in_tests!(fixtures::does(fixtures::Operation::Touch, &self.path)?;);
        self.file.set_modified(time)
    }

    /// Returns whether the file still has its name: it was not deleted, moved or replaced by another. A file system that
    /// does not answer counts as in place; a later write shows whether it is.
    pub fn is_in_place(&self) -> bool {
        match (self.path.metadata(), self.file.metadata()) {
            (Ok(there), Ok(ours)) => are_one_file(&there, &ours),
            (Err(error), _) => !says_gone(&error),
            (Ok(_), Err(_)) => true,
        }
    }

    /// The metadata of the open file, wherever its name is by now.
    ///
    /// # Errors
    /// If the file system does not answer.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// The file as the standard library has it, for another process's output.
    ///
    /// # Errors
    /// If the system has no further handle.
    pub fn handle(&self) -> io::Result<fs::File> {
        self.file.try_clone()
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        #[cfg(any(test, feature = "testing"))]
        let bytes = fixtures::writes(&self.path, &self.file, bytes)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether there is nothing at a path, in place of an answer that could not be had.
fn says_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Makes a folder in one that is there.
///
/// # Errors
/// If there is something of that name, or it cannot be made.
pub fn create_dir(path: &Path) -> io::Result<()> {
    in_tests!(fixtures::makes_folder(path)?;);
    fs::create_dir(path)
}

/// The names in a folder, all or none.
///
/// # Errors
/// If there is no such folder, or it cannot be read to its end.
pub fn read_dir(path: &Path) -> io::Result<Vec<OsString>> {
    in_tests!(fixtures::does(fixtures::Operation::ReadFolder, path)?;);
    fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// Makes a folder, and those above it that are not there.
///
/// # Errors
/// If one of them cannot be made.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_dir_all(parent)?;
    }
    match create_dir(path) {
        // Another process was quicker.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Gives a file or folder another name; a file that had it is replaced.
///
/// # Errors
/// If it can't be renamed. Nothing has changed then.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    in_tests!(fixtures::renames(from, to)?;);
    fs::rename(from, to)
}

/// # Errors
/// If there is no such file, or it cannot be removed.
pub fn remove_file(path: &Path) -> io::Result<()> {
    in_tests!(if fixtures::removes(path)? {
        return Ok(());
    });
    fs::remove_file(path)
}

/// Removes a folder and all that is in it.
///
/// # Errors
/// If there is no such folder, or something of it cannot be removed.
pub fn remove_dir_all(path: &Path) -> io::Result<()> {
    in_tests!(if fixtures::removes(path)? {
        return Ok(());
    });
    fs::remove_dir_all(path)
}

/// Makes `link` lead to `target`.
///
/// # Errors
/// If there is something of that name, or the file system has no links.
#[cfg(unix)]
pub fn symlink(target: &str, link: &Path) -> io::Result<()> {
    in_tests!(fixtures::links(link)?;);
    std::os::unix::fs::symlink(target, link)
}

/// Returns whether two are of one file: a name may refer to another file later.
#[cfg(unix)]
pub fn are_one_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Elsewhere files cannot be distinguished.
#[cfg(not(unix))]
pub fn are_one_file(_: &Metadata, _: &Metadata) -> bool {
    true
}

/// Writes a file that survives a power cut as soon as its folder is synced too: see [`sync_folder`].
///
/// # Errors
/// If it cannot be written.
pub fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    write_all_synced(File::create(path)?, content)
}

/// As [`write_synced`], for a file that must not exist yet.
///
/// # Errors
/// If it exists or cannot be written.
pub fn create_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    write_all_synced(File::create_new(path)?, content)
}

fn write_all_synced(mut file: File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    file.sync()
}

/// Replaces `path` in one step: a reader sees the old content or the new, never half of either, also after a power cut.
///
/// # Errors
/// If it can't be written, or is a device, a link or a folder. The old content stays.
pub fn replace_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_by_way_of("tmp", path, content)
}

/// As [`replace_synced`], by way of a file whose name ends in `draft`: others that do the same at the same time, each with
/// a word of its own, are not in the way; the last one counts.
///
/// # Errors
/// As [`replace_synced`].
pub fn replace_by_way_of(draft: &str, path: &Path, content: &[u8]) -> io::Result<()> {
    is_replaceable(path, Metadata::is_file)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(draft);
    let temporary = path.with_file_name(name);
    let replaced = write_synced(&temporary, content).and_then(|()| rename(&temporary, path));
    if replaced.is_err() {
        // On a full disk every byte counts; the error that is returned is the one above.
        let _ = remove_file(&temporary);
    }
    replaced?;
    sync_folder_of(path)
}

/// Checks that nothing is at `path`, or something of the kind that is to take its place. A rename would put a file in the
/// place of a device, and would leave the target of a link unchanged.
fn is_replaceable(path: &Path, is_kind: fn(&Metadata) -> bool) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if !is_kind(&there) => Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "a device or a link is not replaced: give another name",
        )),
        _ => Ok(()),
    }
}

/// Names survive a power cut only once their folder is on disk. A folder that may be written but not read, and a file system
/// that does not synchronise folders, offer no such guarantee and are accepted without it.
///
/// # Errors
/// If the folder cannot be synchronised.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    in_tests!(fixtures::does(fixtures::Operation::SyncFolder, folder)?;);
    sync_names(folder)?;
    in_tests!(fixtures::has_synced_folder(folder)?;);
    Ok(())
}

#[cfg(unix)]
fn sync_names(folder: &Path) -> io::Result<()> {
    let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })
}

/// Elsewhere folders aren't files.
#[cfg(not(unix))]
fn sync_names(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// [`sync_folder`] of the folder that `path` is in.
///
/// # Errors
/// If the folder cannot be opened or synchronised.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => sync_folder(folder),
        Some(_) => sync_folder(Path::new(".")),
        None => Ok(()),
    }
}

/// Makes `folder` one that holds these files and nothing else: they are written into a folder next to it, which then takes its
/// place; what was there before goes last.
///
/// # Errors
/// If anything cannot be written, or `folder` is a link or a file; it is then what it was.
pub fn replace_folder(folder: &Path, files: &[(&str, &[u8])]) -> io::Result<()> {
    is_replaceable(folder, Metadata::is_dir)?;
    put_back(folder)?;
    let (fresh, old) = (sibling(folder, "new"), sibling(folder, "old"));
    for leftover in [&fresh, &old] {
        if leftover.exists() {
            remove_dir_all(leftover)?;
        }
    }
    let replaced = fill(&fresh, files).and_then(|()| {
        if folder.exists() {
            rename(folder, &old)?;
        }
        rename(&fresh, folder)
    });
    if replaced.is_err() {
        // As of a file that cannot be replaced: the error that is returned is the one above.
        let _ = remove_dir_all(&fresh);
        if !folder.exists() && old.exists() {
            let _ = rename(&old, folder);
        }
    }
    replaced?;
    sync_folder_of(folder)?;
    if old.exists() {
        remove_dir_all(&old)?;
    }
    Ok(())
}

/// Puts back what a kill between the two renames of [`replace_folder`] has left next to `folder`.
///
/// # Errors
/// If it cannot be renamed.
pub fn put_back(folder: &Path) -> io::Result<()> {
    let old = sibling(folder, "old");
    match !folder.exists() && old.is_dir() {
        true => rename(&old, folder),
        false => Ok(()),
    }
}

fn sibling(folder: &Path, suffix: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.{suffix}"))
}

fn fill(folder: &Path, files: &[(&str, &[u8])]) -> io::Result<()> {
    create_dir_all(folder)?;
    for (name, content) in files {
        write_synced(&folder.join(name), content)?;
    }
    // A power cut after the rename must not leave a name without its content.
    sync_folder(folder)
}

#[cfg(test)]
mod tests;
