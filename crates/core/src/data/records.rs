//! Images and tokens as they are in their files, packed ones unpacked: records of one size, read when they are asked for, so that a
//! set may be larger than the memory.
//!
//! Files are read, not mapped: one that is cut short while a run trains on it is an error with its place, where a mapped one
//! would end the process.

use std::fs::File;
use std::sync::Arc;

use super::DataError;
use super::locate::fill_at;
use super::shape::{Shape, interleave};

/// A file that holds an image or a token in each of its records.
#[derive(Debug)]
pub struct RecordFile {
    /// As errors name it.
    pub name: String,
    pub source: Source,
    /// Byte at which the first begins.
    pub first: u64,
    /// Bytes from the beginning of one to that of the next.
    pub each: u64,
    /// Their number.
    pub count: usize,
}

/// The place of a file's bytes.
#[derive(Debug)]
pub enum Source {
    File(File),
    /// Unpacked.
    Memory(Vec<u8>),
}

/// Two are the same if they are the same places of files of one name, or of the same bytes.
impl PartialEq for RecordFile {
    fn eq(&self, other: &Self) -> bool {
        let places = |of: &Self| (of.first, of.each, of.count);
        let are_same = match (&self.source, &other.source) {
            (Source::Memory(one), Source::Memory(other)) => one == other,
            _ => self.name == other.name && self.is_in_a_file() == other.is_in_a_file(),
        };
        are_same && places(self) == places(other)
    }
}

/// Images of a part in their files.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    shape: Shape,
    /// Images are stored plane by plane rather than with the channels of a pixel side by side.
    is_planar: bool,
    files: Arc<[RecordFile]>,
    /// Number of the first record of each file.
    starts: Vec<usize>,
    /// The part's records in its order, counted over all files.
    chosen: Vec<usize>,
}

impl Records {
    /// All images of `files`, one file after the other.
    pub fn new(files: Vec<RecordFile>, shape: Shape, is_planar: bool) -> Self {
        let mut total = 0;
        let mut starts = Vec::with_capacity(files.len());
        for file in &files {
            starts.push(total);
            total += file.count;
        }
        Self {
            shape,
            is_planar: is_planar && shape.channels > 1,
            files: files.into(),
            starts,
            chosen: (0..total).collect(),
        }
    }

    /// Those of its images that `indices` names, in that order.
    pub fn choose(&self, indices: &[usize]) -> Self {
        Self {
            files: Arc::clone(&self.files),
            starts: self.starts.clone(),
            chosen: indices.iter().map(|&index| self.chosen[index]).collect(),
            ..*self
        }
    }

    /// Returns whether all of them are read from files whenever they are asked for.
    pub fn are_in_files(&self) -> bool {
        self.files.iter().all(RecordFile::is_in_a_file)
    }

    /// Bytes of an image.
    pub fn image_bytes(&self) -> usize {
        self.shape.size()
    }

    /// Reads image `index`, channels last, into `scratch`.
    ///
    /// # Errors
    /// The place at which a file has become shorter, or cannot be read.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn read<'a>(&self, index: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], DataError> {
        let record = self.chosen[index];
        let at = self.starts.partition_point(|&start| start <= record) - 1;
        let size = self.image_bytes();
        scratch.resize(if self.is_planar { 2 * size } else { size }, 0);
        let (stored, pixels) = scratch.split_at_mut(size);
        self.files[at].read(record - self.starts[at], stored)?;
        if !self.is_planar {
            return Ok(stored);
        }
        interleave(stored, self.shape.height * self.shape.width, pixels);
        Ok(pixels)
    }
}

impl RecordFile {
    /// Returns whether it is read whenever a record is asked for.
    pub fn is_in_a_file(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    /// Byte at which a record begins.
    pub fn place(&self, record: usize) -> u64 {
        self.first + record as u64 * self.each
    }

    /// Fills `bytes` from the beginning of a record on.
    ///
    /// # Errors
    /// The place at which a file has become shorter, or cannot be read.
    pub fn read(&self, record: usize, bytes: &mut [u8]) -> Result<(), DataError> {
        let byte = self.place(record);
        let found = match &self.source {
            Source::File(file) => fill_at(&self.name, file, bytes, byte)?,
            Source::Memory(all) => {
                let rest = all.get(byte as usize..).unwrap_or_default();
                let found = rest.len().min(bytes.len());
                bytes[..found].copy_from_slice(&rest[..found]);
                found
            }
        };
        match found == bytes.len() {
            true => Ok(()),
            false => Err(DataError::truncated(&self.name, record, byte, [found, bytes.len()])),
        }
    }
}

#[cfg(test)]
mod tests;
