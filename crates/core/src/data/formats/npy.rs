//! Headers of NPY files (NumPy's format 1.0 to 3.0): a magic number, the version, the length of the rest, and a Python dictionary
//! of `descr`, `fortran_order` and `shape`.

use std::io::Read;

use serde::Deserialize;

use super::array::{Element, ElementKind, Head, wrong_type};
use crate::data::DataError;
use crate::data::locate::up_to;

/// The beginning of every file.
pub const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// NumPy pads headers to some hundred bytes; those of structured types, which are refused, may be longer.
const LONGEST_HEADER: u64 = 1 << 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dictionary {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// Reads a header.
///
/// # Errors
/// The fault of the header; an array in Fortran order; elements that neither images nor labels can have.
pub fn head(file: &str, input: &mut dyn Read) -> Result<Head, DataError> {
    let wrong = |why: &str| {
        let fault = format!("data file {file} isn't an NPY file that can be read: {why}");
        DataError::new(fault, "save it again with numpy.save")
    };
    let start = up_to(file, input, 8, 0)?;
    if !start.starts_with(&MAGIC) {
        return Err(wrong("it does not begin with the magic number, \\x93NUMPY"));
    }
    let text_at = match start[MAGIC.len()..] {
        [1, _] => 10,
        [2 | 3, _] => 12,
        _ => return Err(wrong("its version is not 1, 2 or 3")),
    };
    let length = up_to(file, input, text_at - 8, 8)?;
    let is_whole = 8 + length.len() as u64 == text_at;
    let length = length
        .iter()
        .rev()
        .fold(0, |length: u64, &byte| length << 8 | u64::from(byte));
    if !is_whole || length > LONGEST_HEADER {
        return Err(wrong("its header is cut short, or longer than 65536 bytes"));
    }
    let text = up_to(file, input, length, text_at)?;
    if (text.len() as u64) < length {
        return Err(wrong("its header is cut short"));
    }
    let text = String::from_utf8_lossy(&text);
    if text.contains('[') {
        return Err(wrong("its elements are records: save one field of them"));
    }
    let header: Dictionary = serde_json::from_str(&as_json(&text)).map_err(|cause| {
        let (why, at) = (cause.to_string(), text_at + cause.column().saturating_sub(1) as u64);
        let why = why.rsplit_once(" at line ").map_or(&*why, |(why, _)| why);
        wrong(&format!("{why}, at byte {at}"))
    })?;
    if header.fortran_order {
        return Err(wrong("it is in Fortran order: save np.ascontiguousarray(array)"));
    }
    Ok(Head {
        element: element(file, &header.descr)?,
        descr: header.descr,
        shape: header.shape,
        data_at: text_at + length,
    })
}

/// A dictionary of texts, numbers, tuples and truth values, which Python writes like JSON except quotes, brackets, capitals and
/// the comma after a last item: one line in which every byte stays in its place.
fn as_json(text: &str) -> String {
    let mut json = String::with_capacity(text.len());
    for item in text.split(',') {
        if !json.is_empty() {
            let is_after_last = item.trim_ascii_start().starts_with([')', '}']);
            json.push(if is_after_last { ' ' } else { ',' });
        }
        json.push_str(item);
    }
    let spellings = [("'", "\""), ("(", "["), (")", "]"), ("\n", " ")];
    for (python, written) in spellings.into_iter().chain([("False", "false"), ("True", "true")]) {
        json = json.replace(python, written);
    }
    json
}

/// The types that images or labels may have. `|O`, `<c8`, strings and records aren't among them.
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
        _ => {
            let valid = "|u1, <f4 or <f8 for images, integers such as <i8 or |u1 for labels";
            Err(wrong_type(file, descr, "arrays", valid))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
