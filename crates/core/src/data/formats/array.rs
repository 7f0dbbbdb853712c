//! An array of numbers in a file: what its header says about it, and its elements, one after the other in C order.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::data::DataError;
use crate::data::error::listed;
use crate::data::locate::{check_length, open, open_unpacked, rest};

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub kind: ElementKind,
    pub bytes: usize,
    pub is_big_endian: bool,
}

/// Kinds of numbers that images and labels may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    Unsigned,
    Signed,
    Float,
}

impl Element {
    /// From 0 to 255.
    pub const BYTE: Self = Self {
        kind: ElementKind::Unsigned,
        bytes: 1,
        is_big_endian: false,
    };

    pub fn is_byte(self) -> bool {
        (self.kind, self.bytes) == (ElementKind::Unsigned, 1)
    }
}

/// The header of an array.
#[derive(Debug)]
pub struct Head {
    /// As NumPy writes the type, e.g. `<f4`.
    pub descr: String,
    pub element: Element,
    pub shape: Vec<usize>,
    /// Byte of the first element.
    pub data_at: u64,
}

/// Reads a header, and nothing after it. The name is what errors call the file.
pub type ReadHead = fn(&str, &mut dyn Read) -> Result<Head, DataError>;

/// An array, unchanged from its file.
#[derive(Debug)]
pub struct Array {
    pub file: String,
    pub head: Head,
    /// Empty where the elements stay in their file.
    pub data: Vec<u8>,
    /// The file in which they stay.
    pub unread: Option<File>,
}

impl Array {
    /// Opens a file, packed or not. Bytes stay in a file that isn't packed; all else is read.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub fn open(path: &Path, head: ReadHead) -> Result<Self, DataError> {
        let Some(mut unpacked) = open_unpacked(path)? else {
            let packed = open(path)?;
            return Self::read(&packed.name, packed.bytes, head);
        };
        let file = path.display().to_string();
        let head = head(&file, &mut unpacked)?;
        if !head.element.is_byte() {
            return Self::with_rest(&file, head, unpacked);
        }
        check_length(&file, &unpacked, head.bytes().saturating_add(head.data_at.into()))?;
        Ok(Self {
            file,
            head,
            data: Vec::new(),
            unread: Some(unpacked),
        })
    }

    /// Reads an array to the end of its file.
    ///
    /// # Errors
    /// A faulty header, or one that implies another length. Memory grows with what is read, so a hostile header neither
    /// overflows nor allocates.
    pub fn read(file: &str, mut input: impl Read, head: ReadHead) -> Result<Self, DataError> {
        let head = head(file, &mut input)?;
        Self::with_rest(file, head, input)
    }

    fn with_rest(file: &str, head: Head, mut input: impl Read) -> Result<Self, DataError> {
        Ok(Self {
            file: file.into(),
            data: rest(file, &mut input, head.bytes(), head.data_at)?,
            head,
            unread: None,
        })
    }

    /// The error that `what` cannot have such elements.
    pub fn wrong_type(&self, what: &str, valid: &str) -> DataError {
        wrong_type(&self.file, &self.head.descr, what, valid)
    }

    /// The error that the sizes are others than they should be.
    pub fn wrong_shape(&self, valid: &str) -> DataError {
        let fault = format!("data file {} has the sizes [{}]", self.file, listed(&self.head.shape));
        DataError::new(fault, format!("valid: {valid}"))
    }

    /// Elements as integers, if they were read. A number beyond i64 becomes the largest, which isn't a label of any set.
    ///
    /// # Errors
    /// Elements that are floats.
    pub fn integers(&self) -> Result<Vec<i64>, DataError> {
        let Element { kind, bytes, .. } = self.head.element;
        if kind == ElementKind::Float {
            return Err(self.wrong_type("labels", "integers, e.g. <i8 or |u1"));
        }
        let elements = self.data.chunks_exact(bytes).map(|element| {
            let word = self.word(element);
            match kind {
                ElementKind::Signed => {
                    // Shifted to the top and back: the sign fills the upper bits.
                    let unused = 64 - 8 * bytes as u32;
                    (word << unused).cast_signed() >> unused
                }
                ElementKind::Unsigned | ElementKind::Float => i64::try_from(word).unwrap_or(i64::MAX),
            }
        });
        Ok(elements.collect())
    }

    /// Elements of a `f4` or `f8` array, as `f4`.
    pub fn floats(&self) -> impl Iterator<Item = f32> + '_ {
        let bytes = self.head.element.bytes;
        self.data.chunks_exact(bytes).map(move |element| match bytes {
            8 => f64::from_bits(self.word(element)) as f32,
            _ => f32::from_bits(self.word(element) as u32),
        })
    }

    /// The bits of an element of up to 8 bytes.
    fn word(&self, element: &[u8]) -> u64 {
        let join = |word: u64, &byte: &u8| word << 8 | u64::from(byte);
        match self.head.element.is_big_endian {
            true => element.iter().fold(0, join),
            false => element.iter().rev().fold(0, join),
        }
    }
}

impl Head {
    /// Bytes of all elements.
    fn bytes(&self) -> u128 {
        let multiply = |bytes: u128, &size: &usize| bytes.saturating_mul(size as u128);
        self.shape.iter().fold(self.element.bytes as u128, multiply)
    }
}

pub fn wrong_type(file: &str, descr: &str, what: &str, valid: &str) -> DataError {
    let fault = format!("data file {file} has elements of type '{descr}', which {what} cannot have");
    DataError::new(fault, format!("valid: {valid}"))
}
