//! NPY files (NumPy's format 1.0 to 3.0): a magic number, the version, the length of a header, the header as a Python
//! dictionary of `descr`, `fortran_order` and `shape`, and the elements in C order.

use std::fs::File;
use std::io::Read;

use crate::data::DataError;
use crate::data::locate::{check_length, fill, rest};

/// How every file begins.
pub const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// NumPy pads headers to some hundred bytes; those of structured types, which are refused, may be longer.
const LONGEST_HEADER: usize = 1 << 16;

/// What an array is made of.
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
    /// Bytes from 0 to 255.
    pub fn is_byte(self) -> bool {
        (self.kind, self.bytes) == (ElementKind::Unsigned, 1)
    }
}

/// An array as it is in its file.
#[derive(Debug)]
pub struct Array {
    pub file: String,
    /// As NumPy writes the type, e.g. `<f4`.
    pub descr: String,
    pub element: Element,
    pub shape: Vec<usize>,
    /// Byte of the first element.
    pub data_at: u64,
    /// Empty where the elements stay in their file.
    pub data: Vec<u8>,
    /// Where they stay.
    pub unread: Option<File>,
}

/// Reads an array to the end of its file.
///
/// # Errors
/// `NpyHeader` with the byte that is wrong, `NpyType`, `Unreadable`, `SizeMismatch`.
pub fn read(file: &str, mut input: impl Read) -> Result<Array, DataError> {
    let (array, length) = head(file, &mut input)?;
    Ok(Array {
        data: rest(file, &mut input, length, array.data_at)?,
        ..array
    })
}

/// The same for an array of bytes that are to stay in their file; others are read.
///
/// # Errors
/// Those of [`read`].
pub fn open(file: &str, mut input: File) -> Result<Array, DataError> {
    let (array, length) = head(file, &mut input)?;
    if !array.element.is_byte() {
        return Ok(Array {
            data: rest(file, &mut input, length, array.data_at)?,
            ..array
        });
    }
    check_length(file, &input, length.saturating_add(array.data_at.into()))?;
    Ok(Array {
        unread: Some(input),
        ..array
    })
}

/// An array without its elements, and how many bytes those take.
fn head(file: &str, input: &mut impl Read) -> Result<(Array, u128), DataError> {
    let mut start = [0; 8];
    let found = fill(file, input, &mut start, 0)?;
    if found < start.len() || !start.starts_with(&MAGIC) {
        return Err(wrong(file, 0, "the magic number of NPY files, \\x93NUMPY"));
    }
    let length_bytes = match start[6] {
        1 => 2,
        2 | 3 => 4,
        _ => return Err(wrong(file, 6, "version 1, 2 or 3")),
    };
    let mut length = [0; 4];
    let short = || wrong(file, 8, "the length of the header, at most 65536");
    if fill(file, input, &mut length[..length_bytes], 8)? < length_bytes {
        return Err(short());
    }
    let header_at = 8 + length_bytes;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST_HEADER {
        return Err(short());
    }
    let mut header = vec![0; length];
    if fill(file, input, &mut header, header_at as u64)? < length {
        return Err(wrong(file, header_at, "the whole header"));
    }
    let cursor = Cursor {
        file,
        text: &header,
        at: 0,
        start: header_at,
    };
    let (descr, shape) = cursor.header()?;
    let element = element(file, &descr)?;
    let expected = shape
        .iter()
        .fold(element.bytes as u128, |bytes, &size| bytes.saturating_mul(size as u128));
    let array = Array {
        file: file.into(),
        descr,
        element,
        shape,
        data_at: (header_at + length) as u64,
        data: Vec::new(),
        unread: None,
    };
    Ok((array, expected))
}

fn wrong(file: &str, byte: usize, expected: &'static str) -> DataError {
    DataError::NpyHeader {
        file: file.into(),
        byte: byte as u64,
        expected,
    }
}

/// The types that images or labels may have; `|O`, `<c8`, strings and records are none.
fn element(file: &str, descr: &str) -> Result<Element, DataError> {
    let mut characters = descr.chars();
    let order = characters.next();
    let kind = match characters.next() {
        Some('u') => Some(ElementKind::Unsigned),
        Some('i') => Some(ElementKind::Signed),
        Some('f') => Some(ElementKind::Float),
        _ => None,
    };
    let bytes: Option<usize> = characters.as_str().parse().ok();
    match (order, kind, bytes) {
        (Some('<' | '>' | '|'), Some(kind), Some(bytes @ (1 | 2 | 4 | 8))) => Ok(Element {
            kind,
            bytes,
            is_big_endian: order == Some('>'),
        }),
        _ => Err(DataError::NpyType {
            file: file.into(),
            what: "arrays",
            found: descr.into(),
            valid: "|u1, <f4 or <f8 for images, integers such as <i8 or |u1 for labels",
        }),
    }
}

impl Array {
    /// Elements as integers. A number beyond i64 becomes the largest, which is no label of any set.
    ///
    /// # Errors
    /// `NpyType` for other elements.
    pub fn integers(&self) -> Result<Vec<i64>, DataError> {
        let Element { kind, bytes, .. } = self.element;
        if kind == ElementKind::Float {
            return Err(DataError::NpyType {
                file: self.file.clone(),
                what: "labels",
                found: self.descr.clone(),
                valid: "integers, e.g. <i8 or |u1",
            });
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
        let elements = self.data.chunks_exact(self.element.bytes);
        elements.map(|element| match (self.word(element), self.element.bytes) {
            (word, 8) => f64::from_bits(word) as f32,
            (word, _) => f32::from_bits(word as u32),
        })
    }

    /// The bits of an element of up to 8 bytes.
    fn word(&self, element: &[u8]) -> u64 {
        let join = |word: u64, &byte: &u8| word << 8 | u64::from(byte);
        if self.element.is_big_endian {
            element.iter().fold(0, join)
        } else {
            element.iter().rev().fold(0, join)
        }
    }
}

/// Walks the header, which is a Python literal of a known form.
struct Cursor<'a> {
    file: &'a str,
    text: &'a [u8],
    at: usize,
    /// Byte of the file at which the text begins.
    start: usize,
}

impl<'a> Cursor<'a> {
    fn wrong(&self, expected: &'static str) -> DataError {
        wrong(self.file, self.start + self.at, expected)
    }

    /// The type and the sizes that it says.
    fn header(mut self) -> Result<(String, Vec<usize>), DataError> {
        let (mut descr, mut shape) = (None, None);
        self.expect(b'{', "a dictionary: {")?;
        while !self.take(b'}') {
            let key = self.text("a key in quotes, or }")?;
            self.expect(b':', "a colon")?;
            match key {
                b"descr" => descr = Some(self.text("one type in quotes, e.g. '|u1'; records cannot be read")?),
                b"fortran_order" => self.expect_word(b"False", "False: save np.ascontiguousarray(array)")?,
                b"shape" => shape = Some(self.sizes()?),
                _ => return Err(self.wrong("only the keys descr, fortran_order and shape")),
            }
            if !self.take(b',') && self.peek() != Some(b'}') {
                return Err(self.wrong("a comma or }"));
            }
        }
        match (descr, shape) {
            (Some(descr), Some(shape)) => Ok((String::from_utf8_lossy(descr).into_owned(), shape)),
            _ => Err(self.wrong("both descr and shape before the }")),
        }
    }

    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), DataError> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.wrong(expected))
        }
    }

    fn expect_word(&mut self, word: &[u8], expected: &'static str) -> Result<(), DataError> {
        self.peek();
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.wrong(expected))
        }
    }

    /// A text in quotes.
    fn text(&mut self, expected: &'static str) -> Result<&'a [u8], DataError> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            return Err(self.wrong(expected));
        };
        let text = &self.text[self.at + 1..];
        let Some(length) = text.iter().position(|&byte| byte == quote) else {
            return Err(self.wrong("the end of this text"));
        };
        self.at += length + 2;
        Ok(&text[..length])
    }

    /// `(3, 4)`, `(3,)` or `()`.
    fn sizes(&mut self) -> Result<Vec<usize>, DataError> {
        let mut sizes = Vec::new();
        self.expect(b'(', "the sizes: (")?;
        while !self.take(b')') {
            self.peek();
            let digits = self.text[self.at..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            let number = std::str::from_utf8(&self.text[self.at..self.at + digits]).unwrap_or_default();
            sizes.push(number.parse().map_err(|_| self.wrong("a size"))?);
            self.at += digits;
            if !self.take(b',') && self.peek() != Some(b')') {
                return Err(self.wrong("a comma or )"));
            }
        }
        Ok(sizes)
    }
}

#[cfg(test)]
pub(crate) mod tests;
