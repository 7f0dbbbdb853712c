//! Files that survive a power cut: what is written here is on disk when the call returns, and so is its name. And what is
//! wrong with one of them, in words for people.

use std::fs::File;
#[cfg(unix)]
use std::io::ErrorKind;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use ron::error::{Error, SpannedError};
use serde::de::DeserializeOwned;

/// Writes a file that survives a power cut from here on, once its folder does: see [`sync_folder`].
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    write_all_synced(File::create(path)?, content)
}

/// As [`write_synced`], for a file that must not exist yet.
///
/// # Errors
/// If it exists or cannot be written.
pub(crate) fn create_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    write_all_synced(File::create_new(path)?, content)
}

fn write_all_synced(mut file: File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    file.sync_all()
}

/// Replaces `path` in one step: a reader sees the old content or the new, never half of either, and so does whoever
/// looks after a power cut.
///
/// # Errors
/// If it cannot be written; the old content is there then.
pub(crate) fn replace_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let replaced = write_synced(&temporary, content).and_then(|()| std::fs::rename(&temporary, path));
    if replaced.is_err() {
        // On a disk that is full every byte counts; the error that is told is the one above.
        let _ = std::fs::remove_file(&temporary);
    }
    replaced?;
    sync_folder_of(path)
}

/// Names survive a power cut only once their folder is on disk. A folder that may be written but not read, and a file system
/// that does not synchronise folders, are taken as they are: nothing better is to be had of them.
///
/// # Errors
/// If the folder cannot be synchronised.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })
}

/// Elsewhere folders are no files.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// [`sync_folder`] of the folder that `path` is in.
///
/// # Errors
/// If the folder cannot be opened or synchronised.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => sync_folder(folder),
        Some(_) => sync_folder(Path::new(".")),
        None => Ok(()),
    }
}

/// The file in a folder of runs that names the newest one. No link: programs that look for files of all runs in the folder
/// would find those of the newest twice.
pub(crate) const LATEST: &str = "latest";

/// Where `path` leads: a file called [`LATEST`] to the folder beside it that it names, everything else to itself.
pub(crate) fn follow_latest(path: &Path) -> PathBuf {
    if !(path.ends_with(LATEST) && path.is_file()) {
        return path.into();
    }
    let named = std::fs::read_to_string(path).unwrap_or_default();
    let named = Path::new(named.trim());
    match named.components().next() {
        Some(Component::Normal(_)) if named.components().count() == 1 => path.with_file_name(named),
        _ => path.into(),
    }
}

/// What is wrong with a RON text, without advice for those who call its reader.
#[derive(Debug, thiserror::Error)]
#[error("{}", match .0.code { Error::ExceededRecursionLimit => format!("{}: nested too deeply", .0.span.start), _ => .0.to_string() })]
pub(crate) struct RonError(pub SpannedError);

/// Reads a RON text.
///
/// # Errors
/// It is none, or none of a `T`.
pub(crate) fn read_ron<T: DeserializeOwned>(text: &str) -> Result<T, RonError> {
    ron::from_str(text).map_err(RonError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_replaced_is_as_it_was_and_nothing_lies_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.json");
        std::fs::create_dir(&path).unwrap();

        assert!(replace_synced(&path, b"new").is_err());

        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(names.len(), 1);
        assert!(path.is_dir());
    }

    #[test]
    fn latest_leads_to_the_folder_that_it_names_and_to_no_other_place() {
        let folder = tempfile::tempdir().unwrap();
        let latest = folder.path().join("latest");
        assert_eq!(follow_latest(&latest), latest);

        for (text, leads_to) in [
            ("run-1\n", "run-1"),
            ("../else\n", "latest"),
            ("/", "latest"),
            ("", "latest"),
        ] {
            std::fs::write(&latest, text).unwrap();
            assert_eq!(follow_latest(&latest), folder.path().join(leads_to), "{text:?}");
        }
    }

    #[test]
    fn a_text_that_is_nested_too_deeply_is_refused_in_words_for_people() {
        let error = read_ron::<ron::Value>(&"[".repeat(10_000)).unwrap_err().to_string();

        assert!(error.ends_with(": nested too deeply"), "{error}");
    }

    #[test]
    fn a_file_without_a_folder_is_in_the_present_one() {
        assert!(sync_folder_of(Path::new("status.json")).is_ok());
    }
}
