//! `b3sums`: the blake3 of every file of a checkpoint. A later reader compares them to find damage.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::files;
use crate::health::{AtPath, FileError};
use crate::storage::write_synced;

/// Name of the list, which `b3sum --check` can read.
const FILE: &str = "b3sums";

/// The reason why the files of a checkpoint may differ from those that were written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ChecksumError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{0} is damaged: it changed after it was written")]
    Damaged(PathBuf),
    #[error("{0} is damaged: the list of its files is incomplete")]
    Incomplete(PathBuf),
}

/// Lists every file in `folder`, the one called `last` at the end, so that a truncated list is noticed.
///
/// # Errors
/// A file that cannot be read or written.
pub(super) fn write(folder: &Path, last: &str) -> io::Result<()> {
    let mut files = files_in(folder)?;
    files.sort_unstable_by_key(|file| (file == last, file.clone()));
    let line = |file: &String| Ok(format!("{}  {file}\n", blake3_of(&folder.join(file))?));
    let list: String = files.iter().map(line).collect::<io::Result<_>>()?;
    write_synced(&folder.join(FILE), list.as_bytes())
}

/// # Errors
/// A file that is missing or has changed since it was written, or a list that doesn't end with `last`.
pub(super) fn verify(folder: &Path, last: &str) -> Result<(), ChecksumError> {
    let path = folder.join(FILE);
    let incomplete = || ChecksumError::Incomplete(path.clone());
    let list = files::read(&path).at(&path)?;
    let list = std::str::from_utf8(&list).map_err(|_| incomplete())?;
    let files = parse(list).filter(|files| files.last().is_some_and(|(_, file)| *file == last));
    for (sum, file) in files.ok_or_else(incomplete)? {
        let file = folder.join(file);
        if blake3_of(&file).at(&file)?.to_hex().as_str() != sum {
            return Err(ChecksumError::Damaged(file));
        }
    }
    Ok(())
}

/// Files in `folder` that its list does not name.
///
/// # Errors
/// A folder or a list that cannot be read.
pub(super) fn unlisted(folder: &Path) -> io::Result<Vec<String>> {
    let list = files::read_text(&folder.join(FILE))?;
    let listed = parse(&list).unwrap_or_default();
    let is_listed = |name: &String| name == FILE || listed.iter().any(|(_, file)| file == name);
    let mut files = files_in(folder)?;
    files.retain(|name| !is_listed(name));
    files.sort_unstable();
    Ok(files)
}

/// Sums and names. `None` if a line isn't both, or leads out of the folder, where it could name a device without an end.
fn parse(list: &str) -> Option<Vec<(&str, &str)>> {
    let is_inside = |file: &str| {
        Path::new(file)
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
    };
    let entry = |line| str::split_once(line, "  ").filter(|(_, file)| is_inside(file));
    list.lines().map(entry).collect()
}

/// Paths inside `folder`, with `/` between their parts.
fn files_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            let inner = files_in(&entry.path())?;
            files.extend(inner.into_iter().map(|file| format!("{name}/{file}")));
        } else {
            files.push(name);
        }
    }
    Ok(files)
}

fn blake3_of(path: &Path) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(files::open(path)?)?;
    Ok(hasher.finalize())
}
