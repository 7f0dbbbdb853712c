//! Storage that fails when a test wants it to: the n-th operation below a folder meets a fault, and a killed process or a
//! power cut leave what they would leave on a disk.
//!
//! Nothing is watched unless somebody holds a [`StorageFaults`]; then each operation asks first, by its name here. In place of a
//! process that ends, a storage that is *dead*: every later operation fails and changes nothing, so the program winds up
//! without a trace. A power cut also takes back what was not synchronised: data after the last sync of a file, and names that
//! were given, moved or taken away since the last sync of their folder.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::are_one_file;

/// Outcome of the operation that is struck, and of those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with an input/output error; those after it do not. A failed synchronisation loses what was written since the
    /// last one, and the next one succeeds, as on Linux.
    InputOutput,
    /// From here on there is no space left: half of a write gets through, nothing can be created.
    NoSpace,
    /// From here on nothing can be changed.
    ReadOnly,
    /// The process is killed before it.
    Kill,
    /// The process is killed in the middle of a write; before anything else.
    Torn,
    /// The power fails before it: what was not synchronised is lost.
    PowerCut,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::InputOutput,
        Self::NoSpace,
        Self::ReadOnly,
        Self::Kill,
        Self::Torn,
        Self::PowerCut,
    ];

    /// Returns whether the process does not live to see it.
    pub const fn is_deadly(self) -> bool {
        matches!(self, Self::Kill | Self::Torn | Self::PowerCut)
    }
}

/// An operation of a program on its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Write,
    Resize,
    Sync,
    SyncFolder,
    ReadFolder,
    Rename,
    Remove,
    MakeFolder,
    Link,
    Lock,
    Touch,
}

impl Operation {
    const fn needs_space(self) -> bool {
        matches!(self, Self::Create | Self::Write | Self::MakeFolder | Self::Link)
    }
}

/// Lets the storage below a folder fail, until it is dropped. Folders of several must not lie in each other.
#[derive(Debug)]
pub struct StorageFaults(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    root: PathBuf,
    /// Number of the operation that is struck, from 1.
    strikes_at: u64,
    fault: Fault,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    operations: u64,
    struck: Option<String>,
    is_dead: bool,
    journal: Journal,
}

/// The number of those that are watched: one look at it is all that storage costs otherwise.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static WATCHED: RwLock<Vec<Arc<Watched>>> = RwLock::new(Vec::new());

impl StorageFaults {
    /// `fault` strikes the operation of number `strikes_at`, from 1, of those at `root` and below.
    pub fn under(root: &Path, strikes_at: u64, fault: Fault) -> Self {
        let watched = Arc::new(Watched {
            root: root.into(),
            strikes_at,
            fault,
            state: Mutex::default(),
        });
        WATCHED
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(watched.clone());
        COUNT.fetch_add(1, Ordering::Relaxed);
        Self(watched)
    }

    /// Operations until now, those that failed included.
    pub fn operations(&self) -> u64 {
        self.0.state().operations
    }

    /// The operation that was struck and its file; `None` as long as none was.
    pub fn struck(&self) -> Option<String> {
        self.0.state().struck.clone()
    }
}

impl Drop for StorageFaults {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
        let mut all = WATCHED.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|watched| !Arc::ptr_eq(watched, &self.0));
        // Backups of what was not synchronised are no longer needed.
        let _ = fs::remove_dir_all(self.0.trash());
    }
}

/// The watcher of `path`.
fn watcher(path: &Path) -> Option<Arc<Watched>> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let all = WATCHED.read().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|watched| path.starts_with(&watched.root)).cloned()
}

/// Announces an operation without further details.
///
/// # Errors
/// Here and below: what the operation is to fail with.
pub(super) fn does(operation: Operation, path: &Path) -> io::Result<()> {
    consult(operation, path).map(drop)
}

/// `path` is about to be created, or emptied.
pub(super) fn creates(path: &Path) -> io::Result<()> {
    consult(Operation::Create, path)?;
    if path.symlink_metadata().is_ok() {
        let there = || OpenOptions::new().write(true).open(path);
        note_data(path, |journal| journal.shrinks(&there()?, path))
    } else {
        note_created(path)
    }
}

pub(super) fn resizes(path: &Path, file: &fs::File) -> io::Result<()> {
    consult(Operation::Resize, path)?;
    note_data(path, |journal| journal.shrinks(file, path))
}

/// As much of `bytes` as gets through.
pub(super) fn writes<'a>(path: &Path, file: &fs::File, bytes: &'a [u8]) -> io::Result<&'a [u8]> {
    let is_half_done = consult(Operation::Write, path)?;
    note_data(path, |journal| journal.grows(file))?;
    Ok(match is_half_done {
        true => &bytes[..bytes.len().div_ceil(2)],
        false => bytes,
    })
}

pub(super) fn has_synced(path: &Path, file: &fs::File) -> io::Result<()> {
    note_data(path, |journal| journal.synced(file))
}

pub(super) fn makes_folder(path: &Path) -> io::Result<()> {
    consult(Operation::MakeFolder, path)?;
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    note_created(path)
}

pub(super) fn renames(from: &Path, to: &Path) -> io::Result<()> {
    consult(Operation::Rename, to)?;
    note_name(to, |journal, trash| match from.symlink_metadata() {
        Ok(_) => journal.renames(from, to, trash),
        // The rename itself reports it.
        Err(_) => Ok(()),
    })
}

/// Returns whether `path` has been put away already.
pub(super) fn removes(path: &Path) -> io::Result<bool> {
    consult(Operation::Remove, path)?;
    let mut is_in_trash = false;
    note_name(path, |journal, trash| {
        is_in_trash = path.symlink_metadata().is_ok();
        if is_in_trash {
            journal.removes(path, trash)
        } else {
            Ok(())
        }
    })?;
    Ok(is_in_trash)
}

pub(super) fn links(link: &Path) -> io::Result<()> {
    consult(Operation::Link, link)?;
    note_created(link)
}

pub(super) fn has_synced_folder(folder: &Path) -> io::Result<()> {
    note_name(folder, |journal, _| {
        journal.synced_folder(folder);
        Ok(())
    })
}

/// Returns whether only the first half of an operation, a write, is to be done.
fn consult(operation: Operation, path: &Path) -> io::Result<bool> {
    watcher(path).map_or(Ok(false), |watched| watched.consult(operation, path))
}

/// Notes data that the device does not have yet, of operations that have been done or are about to be.
fn note_data(path: &Path, change: impl FnOnce(&mut Journal) -> io::Result<()>) -> io::Result<()> {
    match watcher(path) {
        Some(watched) if matches!(watched.fault, Fault::PowerCut | Fault::InputOutput) => {
            change(&mut watched.state().journal)
        }
        _ => Ok(()),
    }
}

/// And names.
fn note_name(path: &Path, change: impl FnOnce(&mut Journal, &Path) -> io::Result<()>) -> io::Result<()> {
    match watcher(path) {
        Some(watched) if watched.fault == Fault::PowerCut => change(&mut watched.state().journal, &watched.trash()),
        _ => Ok(()),
    }
}

/// A name is about to be given.
fn note_created(path: &Path) -> io::Result<()> {
    note_name(path, |journal, _| {
        journal.push(path, Undo::Remove(path.into()));
        Ok(())
    })
}

impl Watched {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder that keeps the files that a power cut would bring back.
    fn trash(&self) -> PathBuf {
        self.root.with_extension("trash")
    }

    fn consult(&self, operation: Operation, path: &Path) -> io::Result<bool> {
        let mut state = self.state();
        if state.is_dead {
            return Err(io::Error::other("the process has been killed"));
        }
        state.operations += 1;
        if state.operations < self.strikes_at {
            return Ok(false);
        }
        let is_first = state.operations == self.strikes_at;
        if is_first {
            state.struck = Some(format!("{operation:?} {}", path.display()));
        }
        match self.fault {
            Fault::InputOutput if is_first => {
                if operation == Operation::Sync {
                    state.journal.lose(path)?;
                }
                Err(io::Error::other("injected input/output error"))
            }
            Fault::InputOutput => Ok(false),
            Fault::NoSpace if is_first && operation == Operation::Write => Ok(true),
            Fault::NoSpace if operation.needs_space() => Err(ErrorKind::StorageFull.into()),
            Fault::NoSpace => Ok(false),
            Fault::ReadOnly if operation == Operation::ReadFolder => Ok(false),
            Fault::ReadOnly => Err(ErrorKind::ReadOnlyFilesystem.into()),
            Fault::Torn if operation == Operation::Write => {
                state.is_dead = true;
                Ok(true)
            }
            Fault::Torn | Fault::Kill | Fault::PowerCut => {
                state.is_dead = true;
                if self.fault == Fault::PowerCut {
                    std::mem::take(&mut state.journal).take_back()?;
                }
                Err(io::Error::other("the process is killed here"))
            }
        }
    }
}

/// Changes that have not been synchronised.
#[derive(Debug, Default)]
struct Journal {
    names: Vec<NameChange>,
    data: Vec<Unsynced>,
}

/// A name in `folder` that was given, moved or taken away.
#[derive(Debug)]
struct NameChange {
    folder: PathBuf,
    undo: Undo,
}

#[derive(Debug)]
enum Undo {
    Remove(PathBuf),
    /// And what the new name stood for before.
    MoveBack {
        from: PathBuf,
        to: PathBuf,
        replaced: Option<PathBuf>,
    },
    Restore {
        path: PathBuf,
        kept: PathBuf,
    },
}

#[derive(Debug)]
struct Unsynced {
    file: fs::File,
    durable: Durable,
}

#[derive(Debug)]
enum Durable {
    /// The file has only grown since.
    Length(u64),
    Content(Vec<u8>),
}

impl Journal {
    /// `file`, of that length, is about to grow.
    fn grows(&mut self, file: &fs::File) -> io::Result<()> {
        let length = file.metadata()?.len();
        self.changes(file, || Ok(Durable::Length(length)))
    }

    /// `file` at `path` is about to lose some of its content.
    fn shrinks(&mut self, file: &fs::File, path: &Path) -> io::Result<()> {
        self.changes(file, || Ok(Durable::Content(fs::read(path)?)))
    }

    fn changes(&mut self, file: &fs::File, durable: impl FnOnce() -> io::Result<Durable>) -> io::Result<()> {
        if self.place_of(file)?.is_none() {
            let (file, durable) = (file.try_clone()?, durable()?);
            self.data.push(Unsynced { file, durable });
        }
        Ok(())
    }

    fn place_of(&self, file: &fs::File) -> io::Result<Option<usize>> {
        let ours = file.metadata()?;
        let is_it = |unsynced: &Unsynced| unsynced.file.metadata().is_ok_and(|other| are_one_file(&ours, &other));
        Ok(self.data.iter().position(is_it))
    }

    /// Turns the data that the file at `path` has not synchronised into zeros, which count as synchronised.
    fn lose(&mut self, path: &Path) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(path)?;
        let Some(place) = self.place_of(&file)? else {
            return Ok(());
        };
        let length = file.metadata()?.len();
        match self.data.swap_remove(place).durable {
            Durable::Length(durable) => {
                file.set_len(durable)?;
                file.set_len(length)
            }
            content @ Durable::Content(_) => Unsynced { file, durable: content }.take_back(),
        }
    }

    /// All data of `file` are on disk.
    fn synced(&mut self, file: &fs::File) -> io::Result<()> {
        if let Some(place) = self.place_of(file)? {
            self.data.swap_remove(place);
        }
        Ok(())
    }

    /// `from` is about to become `to`.
    fn renames(&mut self, from: &Path, to: &Path, trash: &Path) -> io::Result<()> {
        let replaced = match to.symlink_metadata() {
            // An empty folder is replaced by nothing but a folder.
            Ok(there) if !there.is_dir() => Some(self.keep(to, trash)?),
            _ => None,
        };
        let (from, path) = (from.to_path_buf(), to);
        let to = to.to_path_buf();
        self.push(path, Undo::MoveBack { from, to, replaced });
        Ok(())
    }

    /// `path` is about to be removed: moves it to the trash.
    fn removes(&mut self, path: &Path, trash: &Path) -> io::Result<()> {
        let kept = self.keep(path, trash)?;
        self.push(
            path,
            Undo::Restore {
                path: path.into(),
                kept,
            },
        );
        Ok(())
    }

    fn keep(&self, path: &Path, trash: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(trash)?;
        let free = (self.names.len()..)
            .map(|number| trash.join(number.to_string()))
            .find(|place| place.symlink_metadata().is_err());
        let place = free.ok_or(ErrorKind::AlreadyExists)?;
        fs::rename(path, &place)?;
        Ok(place)
    }

    fn push(&mut self, path: &Path, undo: Undo) {
        let folder = path.parent().unwrap_or(path).to_path_buf();
        self.names.push(NameChange { folder, undo });
    }

    /// All names in `folder` are on disk.
    fn synced_folder(&mut self, folder: &Path) {
        let (durable, mut open): (Vec<_>, Vec<_>) = std::mem::take(&mut self.names)
            .into_iter()
            .partition(|change| change.folder == folder);
        for change in durable {
            if let Undo::MoveBack { from, to, .. } = change.undo {
                open.iter_mut().for_each(|other| other.follow(&from, &to));
            }
        }
        self.names = open;
    }

    /// The last change first, so that every name is where it was when the change before it was made.
    fn take_back(self) -> io::Result<()> {
        for change in self.names.into_iter().rev() {
            match change.undo {
                Undo::Remove(path) => remove_any(&path)?,
                Undo::MoveBack { from, to, replaced } => {
                    // The rename itself was struck, or failed.
                    if to.symlink_metadata().is_ok() {
                        fs::rename(&to, &from)?;
                    }
                    if let Some(kept) = replaced {
                        fs::rename(kept, &to)?;
                    }
                }
                Undo::Restore { path, kept } => fs::rename(kept, path)?,
            }
        }
        self.data.into_iter().try_for_each(Unsynced::take_back)
    }
}

impl NameChange {
    /// Follows a permanent move from below `from` to below `to`.
    fn follow(&mut self, from: &Path, to: &Path) {
        let follow = |path: &mut PathBuf| {
            if let Ok(rest) = path.strip_prefix(from) {
                *path = to.join(rest);
            }
        };
        follow(&mut self.folder);
        match &mut self.undo {
            Undo::Remove(path) | Undo::Restore { path, .. } => follow(path),
            Undo::MoveBack { from, to, .. } => {
                follow(from);
                follow(to);
            }
        }
    }
}

impl Unsynced {
    fn take_back(self) -> io::Result<()> {
        match self.durable {
            Durable::Length(length) => self.file.set_len(length),
            Durable::Content(content) => {
                use std::io::{Seek, Write};

                let mut file = self.file;
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(&content)
            }
        }
    }
}

fn remove_any(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(there) if there.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        // Its creation was struck, or failed.
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
