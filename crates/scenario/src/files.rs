//! Input of programs: files, the folder that `latest` names, and the faults of a RON text, in words for people; and values written
//! in the dialect of scenario files.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use ron::Options;
use ron::error::{Error, SpannedError};
use ron::extensions::Extensions;
use ron::ser::PrettyConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The file in a folder of runs that names the newest one. No link: programs that look for files of all runs in the folder
/// would find those of the newest twice.
pub const LATEST: &str = "latest";

/// Opens a file for reading, but no pipe or device: in the folder of a run, which may be anyone's, either is a trap that never
/// begins or never ends.
///
/// # Errors
/// The system's error; `InvalidInput` where it isn't a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    if path.metadata()?.is_file() {
        File::open(path)
    } else {
        Err(not_regular())
    }
}

/// The error of a pipe, a device or a folder in the place of a file.
pub(crate) fn not_regular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it isn't a regular file")
}

/// All of a file that [`open`] opens.
///
/// # Errors
/// Those of [`open`], and of reading.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same as a text.
///
/// # Errors
/// Those of [`read`]; `InvalidData` where it isn't UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    io::read_to_string(open(path)?)
}

/// `1 round`, `2 rounds`: how many there are of `one`, for people.
pub fn counted(count: impl Display, one: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {one}{plural}")
}

/// The first `count` of a list, and how many more there are.
pub fn listed_first<T: Display>(count: usize, items: impl IntoIterator<Item = T>) -> String {
    let mut items = items.into_iter();
    let named: Vec<String> = items.by_ref().take(count).map(|item| item.to_string()).collect();
    let named = named.join(", ");
    match items.count() {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The last part of a path, for people; empty where there is none.
pub fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The target of `path`: of a file called [`LATEST`] the folder next to it that it names, of everything else itself.
pub fn follow_latest(path: &Path) -> PathBuf {
    if !(path.ends_with(LATEST) && path.is_file()) {
        return path.into();
    }
    let named = read_text(path).unwrap_or_default();
    let named = Path::new(named.trim());
    match named.components().next() {
        Some(Component::Normal(_)) if named.components().count() == 1 => path.with_file_name(named),
        _ => path.into(),
    }
}

/// The dialect of scenario files.
pub fn ron_options() -> Options {
    Options::default().with_default_extension(Extensions::IMPLICIT_SOME)
}

/// A value of a scenario as a scenario writes it.
pub fn ron_text(value: &impl Serialize) -> String {
    // RON refuses no text and no number.
    ron::ser::to_string_pretty(value, PrettyConfig::new().compact_structs(true)).unwrap_or_default()
}

/// A scenario, or another file in its language, with every default written out and options without `Some`.
///
/// # Errors
/// None for values that such a file can hold: RON accepts everything that serde passes on here.
pub fn resolved_ron(file: &impl Serialize) -> Result<String, ron::Error> {
    let layout = PrettyConfig::new().struct_names(false).depth_limit(3);
    ron_options().to_string_pretty(file, layout)
}

/// A fault of a RON text, without advice for the callers of its reader.
#[derive(Debug, thiserror::Error)]
#[error("{}", match .0.code { Error::ExceededRecursionLimit => format!("{}: nested too deeply", .0.span.start), _ => .0.to_string() })]
pub struct RonError(pub SpannedError);

/// Reads a RON text.
///
/// # Errors
/// It isn't RON, or not that of a `T`.
pub fn read_ron<T: DeserializeOwned>(text: &str) -> Result<T, RonError> {
    ron::from_str(text).map_err(RonError)
}

#[cfg(test)]
mod tests;
