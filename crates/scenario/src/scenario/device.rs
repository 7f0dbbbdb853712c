//! The devices that a scenario can name.

use std::fmt;
use std::str::FromStr;

use crate::growth::written_as_text;
use crate::schema::{Described, Kind, Names};

/// A device of a run. CUDA devices carry their index: "the" CUDA device would change with the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceSpec {
    /// The processor.
    Cpu,
    /// A CUDA device by its index.
    Cuda(usize),
}

/// Text that names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` isn't a device; write `cpu` or `cuda:<index>` (e.g. `cuda:0`)")]
pub struct DeviceError(pub String);

impl FromStr for DeviceSpec {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let cuda_index = || {
            text.strip_prefix("cuda:")
                .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|digits| digits.parse::<i8>().ok())
        };
        match text {
            "cpu" => Ok(Self::Cpu),
            // libtorch's device index is an i8.
            _ => cuda_index()
                .map(|index| Self::Cuda(index as usize))
                .ok_or_else(|| DeviceError(text.into())),
        }
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

written_as_text!(DeviceSpec, ToString::to_string);

impl Described for DeviceSpec {
    const KIND: Kind = Kind::Text(Names::Form {
        noun: "device",
        form: "\"cpu\" or \"cuda:<index>\"",
        accepts: |text| text.parse::<Self>().is_ok(),
    });
}

#[cfg(test)]
mod tests;
