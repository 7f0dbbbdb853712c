//! Files of tensors, read without libtorch, and the places where two differ.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::Value;

use super::{DiffError, DiffKind, Difference, Side};
use crate::health::AtPath;
use crate::telemetry::Num;

/// The differences of two files, one per tensor, by name: its shape and type, or its first different element.
///
/// # Errors
/// A file that can't be read or doesn't hold tensors.
pub(super) fn differing(files: &[PathBuf; 2]) -> Result<Vec<Difference>, DiffError> {
    let [left, right] = files;
    let bytes = [crate::files::read(left).at(left)?, crate::files::read(right).at(right)?];
    let [left, right] = [tensors(left, &bytes[0])?, tensors(right, &bytes[1])?];
    let names: BTreeSet<&str> = left.names().into_iter().chain(right.names()).collect();
    let differences = names.into_iter().filter_map(|name| {
        let (field, [left, right], ulp) = difference(name, left.tensor(name).ok(), right.tensor(name).ok())?;
        let sides = [Side::new(&files[0], None, left), Side::new(&files[1], None, right)];
        Some(Difference {
            ulp,
            ..Difference::new(DiffKind::Checkpoints, field, sides)
        })
    });
    Ok(differences.collect())
}

fn tensors<'a>(path: &Path, bytes: &'a [u8]) -> Result<SafeTensors<'a>, DiffError> {
    SafeTensors::deserialize(bytes).map_err(|error| DiffError::Content {
        path: path.into(),
        problem: error.to_string(),
    })
}

/// The field, `name` or `name[index]`, with both values, `None` where there is no such tensor, and how many numbers of that
/// precision lie between the elements, one of them counted.
fn difference(
    name: &str,
    left: Option<TensorView>,
    right: Option<TensorView>,
) -> Option<(String, [Option<Value>; 2], Option<u64>)> {
    let kind = |tensor: &TensorView| format!("{:?} {:?}", tensor.dtype(), tensor.shape());
    let data = |tensor: &Option<TensorView>| tensor.as_ref().map(|tensor| Value::String(kind(tensor)));
    let both = left.as_ref().zip(right.as_ref());
    let Some((one, other)) = both.filter(|(one, other)| kind(one) == kind(other)) else {
        return Some((name.into(), [data(&left), data(&right)], None));
    };
    let dtype = one.dtype();
    let mut pairs = elements(one).zip(elements(other)).enumerate();
    let (index, (one_bytes, other_bytes)) = pairs.find(|(_, (one, other))| one != other)?;
    let values = [one_bytes, other_bytes].map(|bytes| Some(value(dtype, bytes)));
    Some((
        place(name, one.shape(), index),
        values,
        distance(dtype, one_bytes, other_bytes),
    ))
}

/// The bytes of each element.
fn elements<'a>(tensor: &TensorView<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let count = tensor.shape().iter().product::<usize>().max(1);
    let data = tensor.data();
    data.chunks_exact((data.len() / count).max(1))
}

/// `name[2, 0]`
fn place(name: &str, shape: &[usize], index: usize) -> String {
    let (mut rest, mut indices) = (index, vec![0; shape.len()]);
    for (at, size) in indices.iter_mut().zip(shape).rev() {
        *at = rest % size;
        rest /= size;
    }
    format!("{name}{indices:?}")
}

/// The value as a number. Integers, and types that this program does not save, count as finite.
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

/// The distance of two floats in steps of their own precision. `None` for NaN and for anything but floats.
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
