//! Frames: two lengths, a JSON header, and the arrays that it names, raw and little-endian.

use std::io::{self, ErrorKind, Read, Write};

use serde::{Deserialize, Serialize};

/// Version of frames and spaces. A client that speaks another is refused.
pub const VERSION: u32 = 1;
/// Most bytes of a client's header, and of its arrays: the actions of all envs are far shorter.
const LONGEST: u64 = 1 << 20;

/// Requests of a client.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Request {
    /// The first request.
    Hello {
        version: u32,
        /// `flat`, unless it says `factored`.
        actions: Option<String>,
    },
    /// New episodes of all envs; `None` takes the scenario's seed.
    Reset { seed: Option<u64> },
    /// One action for each env.
    Step { arrays: Vec<ArrayHeader> },
    /// The end.
    Close,
}

/// An array of a frame.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrayHeader {
    pub name: String,
    /// f32, f64, i64 or u8.
    pub dtype: String,
    pub shape: Vec<usize>,
}

/// The arrays of a frame, one after the other.
#[derive(Debug, Default)]
pub struct Arrays {
    headers: Vec<ArrayHeader>,
    bytes: Vec<u8>,
}

impl Arrays {
    /// Appends an array; `bytes` are its elements in row-major order.
    pub fn add(&mut self, name: &str, dtype: &str, shape: &[usize], bytes: impl IntoIterator<Item = u8>) {
        self.headers.push(ArrayHeader {
            name: name.into(),
            dtype: dtype.into(),
            shape: shape.into(),
        });
        self.bytes.extend(bytes);
    }
}

/// The reason why a frame cannot be read, and the state of the connection after it.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The next frame can be read.
    #[error("a frame's header is not understood: {0}")]
    Header(#[from] serde_json::Error),
    #[error("a frame announces {length} bytes of {what}, at most {LONGEST} are read; is this the end of another pipe?")]
    TooLong { what: &'static str, length: u64 },
    /// The failure came within a frame or between two.
    #[error("the pipe cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl FrameError {
    /// Nothing can be read any more.
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::Header(_))
    }

    /// The other end was closed.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == ErrorKind::UnexpectedEof)
    }
}

/// Reads a client's next frame.
///
/// # Errors
/// The end of the pipe, also within a frame; data that isn't a frame.
pub fn read(input: &mut impl Read) -> Result<(Request, Vec<u8>), FrameError> {
    let (mut header, mut body) = ([0; 4], [0; 8]);
    input.read_exact(&mut header)?;
    input.read_exact(&mut body)?;
    let header = read_part(input, "header", u32::from_le_bytes(header).into())?;
    let body = read_part(input, "arrays", u64::from_le_bytes(body))?;
    Ok((serde_json::from_slice(&header)?, body))
}

fn read_part(input: &mut impl Read, what: &'static str, length: u64) -> Result<Vec<u8>, FrameError> {
    if length > LONGEST {
        return Err(FrameError::TooLong { what, length });
    }
    let mut part = vec![0; length as usize];
    input.read_exact(&mut part)?;
    Ok(part)
}

/// Writes a frame, and makes sure that it leaves.
///
/// # Errors
/// The other end was closed.
pub fn write(output: &mut (impl Write + ?Sized), header: &impl Serialize, arrays: &Arrays) -> io::Result<()> {
    #[derive(Serialize)]
    struct Header<'a, H> {
        #[serde(flatten)]
        header: &'a H,
        arrays: &'a [ArrayHeader],
    }
    let header = serde_json::to_vec(&Header {
        header,
        arrays: &arrays.headers,
    })?;
    output.write_all(&(header.len() as u32).to_le_bytes())?;
    output.write_all(&(arrays.bytes.len() as u64).to_le_bytes())?;
    output.write_all(&header)?;
    output.write_all(&arrays.bytes)?;
    output.flush()
}

#[cfg(test)]
mod tests;
