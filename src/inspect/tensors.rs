//! Files of tensors, read without libtorch: where two part.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::Value;

use crate::files::name_of;
use crate::health::{AtPath, FileError};
use crate::telemetry::Num;

/// Why tensors cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TensorsError {
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of something else.
    #[error("{}: no file of tensors in safetensors: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// The names of all files of tensors in a folder and the folders in it, with `/` between their parts, in order.
pub(super) fn tensor_files(folder: &Path) -> Result<Vec<String>, FileError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).at(folder)? {
        let path = entry.at(folder)?.path();
        let name = name_of(&path);
        if path.is_dir() {
            let inner = tensor_files(&path)?;
            files.extend(inner.into_iter().map(|file| format!("{name}/{file}")));
        } else if path.extension().is_some_and(|extension| extension == "safetensors") {
            files.push(name);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// A tensor of a name in which two files differ: what it is, or its first element that is another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TensorDifference {
    /// `name`, or `name[index]`.
    pub field: String,
    /// `None` where there is no such tensor.
    pub left: Option<Value>,
    pub right: Option<Value>,
    /// How many numbers of that precision lie between the elements, one of them counted.
    pub ulp: Option<u64>,
}

/// Where two files part, one entry a tensor, by name.
///
/// # Errors
/// A file that cannot be read or is none of tensors.
pub(super) fn differing(left: &Path, right: &Path) -> Result<Vec<TensorDifference>, TensorsError> {
    with_tensors(left, |left| {
        with_tensors(right, |right| {
            let (lefts, rights) = (left.names(), right.names());
            let names: BTreeSet<&str> = lefts.into_iter().chain(rights).collect();
            let pairs = names
                .into_iter()
                .map(|name| (name, left.tensor(name).ok(), right.tensor(name).ok()));
            pairs
                .filter_map(|(name, left, right)| difference(name, left, right))
                .collect()
        })
    })?
}

fn with_tensors<T>(path: &Path, read: impl FnOnce(&SafeTensors) -> T) -> Result<T, TensorsError> {
    let bytes = crate::files::read(path).at(path)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| TensorsError::Content {
        path: path.into(),
        problem: error.to_string(),
    })?;
    Ok(read(&tensors))
}

fn difference(name: &str, left: Option<TensorView>, right: Option<TensorView>) -> Option<TensorDifference> {
    let kind = |tensor: &TensorView| format!("{:?} {:?}", tensor.dtype(), tensor.shape());
    let data = |tensor: &Option<TensorView>| tensor.as_ref().map(|tensor| Value::String(kind(tensor)));
    let both = left.as_ref().zip(right.as_ref());
    let Some((one, other)) = both.filter(|(one, other)| kind(one) == kind(other)) else {
        return Some(TensorDifference {
            field: name.into(),
            left: data(&left),
            right: data(&right),
            ulp: None,
        });
    };
    let mut pairs = elements(one).zip(elements(other));
    let index = pairs.position(|(one, other)| one != other)?;
    let (one_bytes, other_bytes) = (elements(one).nth(index)?, elements(other).nth(index)?);
    Some(TensorDifference {
        field: place(name, one.shape(), index),
        left: Some(value(one.dtype(), one_bytes)),
        right: Some(value(one.dtype(), other_bytes)),
        ulp: distance(one.dtype(), one_bytes, other_bytes),
    })
}

/// The bytes of each element.
fn elements<'a>(tensor: &TensorView<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let count = tensor.shape().iter().product::<usize>().max(1);
    let data = tensor.data();
    data.chunks_exact((data.len() / count).max(1))
}

/// `name[2, 0]`
fn place(name: &str, shape: &[usize], index: usize) -> String {
    let mut rest = index;
    let mut indices: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&size| {
            let index = rest % size;
            rest /= size;
            index
        })
        .collect();
    indices.reverse();
    format!("{name}{indices:?}")
}

/// Integers, and what this program does not save, count as finite.
fn number(dtype: Dtype, bytes: &[u8]) -> f64 {
    match (dtype, bytes) {
        (Dtype::F32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (Dtype::BF16, &[a, b]) => f64::from(f32::from_le_bytes([0, 0, a, b])),
        (Dtype::F64, bytes) => bytes.try_into().map_or(0.0, f64::from_le_bytes),
        _ => 0.0,
    }
}

fn value(dtype: Dtype, bytes: &[u8]) -> Value {
    let number = match (dtype, bytes) {
        (Dtype::F32, &[a, b, c, d]) => Num::from(f32::from_le_bytes([a, b, c, d])),
        (Dtype::F64 | Dtype::BF16, bytes) => Num(number(dtype, bytes)),
        (Dtype::I64, bytes) => {
            return bytes
                .try_into()
                .map_or(Value::Null, |bytes| i64::from_le_bytes(bytes).into());
        }
        (_, bytes) => return Value::String(format!("bytes {bytes:02x?}")),
    };
    serde_json::to_value(number).unwrap_or_default()
}

/// How far two floats lie apart in steps of their own precision; `None` for NaN and for anything but floats.
fn distance(dtype: Dtype, left: &[u8], right: &[u8]) -> Option<u64> {
    if number(dtype, left).is_nan() || number(dtype, right).is_nan() {
        return None;
    }
    let rank = |bytes: &[u8]| -> Option<i64> {
        match (dtype, bytes) {
            (Dtype::F32, &[a, b, c, d]) => Some(ranked(i32::from_le_bytes([a, b, c, d]).into(), i32::MIN.into())),
            (Dtype::BF16, &[a, b]) => Some(ranked(i16::from_le_bytes([a, b]).into(), i16::MIN.into())),
            (Dtype::F64, bytes) => Some(ranked(i64::from_le_bytes(bytes.try_into().ok()?), i64::MIN)),
            _ => None,
        }
    };
    Some(rank(left)?.abs_diff(rank(right)?))
}

/// The bits of a float as an integer that grows with it by one from each float to the next; -0 and 0 are one.
fn ranked(bits: i64, lowest: i64) -> i64 {
    if bits < 0 { lowest - bits } else { bits }
}

#[cfg(test)]
mod tests;
