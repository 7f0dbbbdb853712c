//! The place of a data file, and its bytes: unpacked if they are gzip, counted so that errors can name the place.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::DataError;
use super::error::listed;
use crate::files;

/// The variable with the folder in which relative data paths are looked up after the scenario's own folder.
const DATA_FOLDER_VARIABLE: &str = "SIMIC_ENGINE_DATA";
/// The beginning of a file that gzip has packed.
pub const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Large, because images are read in pieces of a few kilobytes.
const BUFFER: usize = 1 << 16;

/// The path of data called `name`, as [`locate`] finds it. `origin` says where the data are published.
///
/// # Errors
/// Every place that was looked at.
pub fn find(name: &str, scenario_dir: Option<&Path>, origin: Option<&str>) -> Result<PathBuf, DataError> {
    locate(name, scenario_dir).map_err(|looked_at| missing(name, &looked_at, origin))
}

/// The error that no file called `name` is in any of the places.
pub fn missing(name: &str, looked_at: &[PathBuf], origin: Option<&str>) -> DataError {
    let places = listed(looked_at.iter().map(|path| path.display()));
    let published = origin.map(|origin| format!(" (published at {origin})"));
    let remedy = format!(
        "looked at {places}. Place the file there{}, or choose a task that needs none (digits_*, synth_*)",
        published.unwrap_or_default()
    );
    DataError::new(format!("data file '{name}' was not found"), remedy)
}

/// The path of `name`: in the scenario's folder, in the one that `SIMIC_ENGINE_DATA` names, or in `data/`.
///
/// # Errors
/// Every place that was looked at.
pub fn locate(name: &str, scenario_dir: Option<&Path>) -> Result<PathBuf, Vec<PathBuf>> {
    // Joining an absolute path yields that path, so one list serves both.
    let mut looked_at: Vec<PathBuf> = scenario_dir
        .map(PathBuf::from)
        .into_iter()
        .chain(std::env::var_os(DATA_FOLDER_VARIABLE).map(PathBuf::from))
        .chain([PathBuf::from("data")])
        .map(|folder| folder.join(name))
        .collect();
    looked_at.dedup();
    match looked_at.iter().find(|path| path.exists()) {
        Some(path) => Ok(path.clone()),
        None => Err(looked_at),
    }
}

/// A file that is being read.
pub struct Input {
    /// As errors name it.
    pub name: String,
    pub bytes: Counted<Box<dyn Read>>,
}

/// Opens a file for reading, through a decoder if it is gzip.
///
/// # Errors
/// Errors of the system.
pub fn open(path: &Path) -> Result<Input, DataError> {
    let io = |cause| DataError::io(path, cause);
    let mut file = BufReader::with_capacity(BUFFER, files::open(path).map_err(io)?);
    let is_packed = file.fill_buf().map_err(io)?.starts_with(&GZIP_MAGIC);
    let name = path.display().to_string();
    let (name, bytes): (String, Box<dyn Read>) = if is_packed {
        let unpacked = BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file));
        (format!("{name} (unpacked)"), Box::new(unpacked))
    } else {
        (name, Box::new(file))
    };
    let bytes = Counted::new(bytes);
    Ok(Input { name, bytes })
}

/// Opens a file for reading at any place. `None` if that cannot be done because it is packed.
///
/// # Errors
/// Errors of the system.
pub fn open_unpacked(path: &Path) -> Result<Option<File>, DataError> {
    let io = |cause| DataError::io(path, cause);
    let file = files::open(path).map_err(io)?;
    let mut start = GZIP_MAGIC.map(|_| 0);
    fill_at(&path.display().to_string(), &file, &mut start, 0)?;
    Ok((start != GZIP_MAGIC).then_some(file))
}

/// A reader that knows how far it came, even while something else holds it.
pub struct Counted<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R> Counted<R> {
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            count: Rc::default(),
        }
    }

    /// Bytes read so far, now and later.
    pub fn count(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.count)
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

/// At most `most` bytes from where `input` stands, which is byte `start` of its file. Memory grows with what is there.
///
/// # Errors
/// The byte at which reading failed.
pub fn up_to(file: &str, input: &mut (impl Read + ?Sized), most: u64, start: u64) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::with_capacity(most.min(BUFFER as u64) as usize);
    match input.take(most).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(cause) => Err(DataError::unreadable(file, start + bytes.len() as u64, cause)),
    }
}

/// Fills `buffer` with what a file has from byte `start` on, as far as there are bytes, from any thread.
///
/// # Errors
/// The byte at which reading failed.
pub fn fill_at(name: &str, file: &File, buffer: &mut [u8], start: u64) -> Result<usize, DataError> {
    let mut filled = 0;
    while filled < buffer.len() {
        let byte = start + filled as u64;
        match read_at(file, &mut buffer[filled..], byte) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(DataError::unreadable(name, byte, cause)),
        }
    }
    Ok(filled)
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], byte: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, byte)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], byte: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, byte)
}

/// Checks that a file is exactly as long as its header says.
///
/// # Errors
/// Both lengths, or that the length is unknown.
pub fn check_length(name: &str, file: &File, expected: u128) -> Result<(), DataError> {
    let metadata = file.metadata().map_err(|cause| DataError::unreadable(name, 0, cause))?;
    let length = u128::from(metadata.len());
    if length == expected {
        return Ok(());
    }
    // A file that is too long is reported as a stream is: by the first byte too many.
    let found = length.min(expected.saturating_add(1)) as u64;
    Err(DataError::length(name, expected, found))
}

/// Exactly the `expected` bytes that are left of a file. Memory grows with what is there, not with what a header claims.
///
/// # Errors
/// The byte at which reading failed; both lengths of the whole file, if there are fewer or more.
pub fn rest(file: &str, input: &mut impl Read, expected: u128, start: u64) -> Result<Vec<u8>, DataError> {
    let limit = u64::try_from(expected).unwrap_or(u64::MAX).saturating_add(1);
    let bytes = up_to(file, input, limit, start)?;
    if bytes.len() as u128 == expected {
        return Ok(bytes);
    }
    let expected = expected.saturating_add(start.into());
    Err(DataError::length(file, expected, start + bytes.len() as u64))
}

#[cfg(test)]
pub(crate) mod tests;
