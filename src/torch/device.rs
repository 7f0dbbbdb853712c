//! Where tensors live: the devices that a scenario can name.

use std::fmt;
use std::str::FromStr;

use tch::Device;

use crate::schema::{Described, Kind, Names, written_as_text};

/// A device of a run. CUDA devices carry their index: "the" CUDA device would change with the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceSpec {
    Cpu,
    Cuda(usize),
    Mps,
}

/// Text that names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no device; write `cpu`, `cuda:<index>` (e.g. `cuda:0`) or `mps`")]
pub struct DeviceError(pub String);

impl DeviceSpec {
    pub fn to_tch(self) -> Device {
        match self {
            Self::Cpu => Device::Cpu,
            Self::Cuda(index) => Device::Cuda(index),
            Self::Mps => Device::Mps,
        }
    }
}

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
            "mps" => Ok(Self::Mps),
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
            Self::Mps => f.write_str("mps"),
        }
    }
}

written_as_text!(DeviceSpec);

impl Described for DeviceSpec {
    const KIND: Kind = Kind::Text(Names::Form {
        noun: "device",
        form: "\"cpu\", \"cuda:<index>\" or \"mps\"",
        accepts: |text| text.parse::<Self>().is_ok(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_printed() {
        for (text, device) in [
            ("cpu", DeviceSpec::Cpu),
            ("cuda:0", DeviceSpec::Cuda(0)),
            ("cuda:11", DeviceSpec::Cuda(11)),
            ("mps", DeviceSpec::Mps),
        ] {
            assert_eq!(text.parse(), Ok(device));
            assert_eq!(device.to_string(), text);
        }
        assert_eq!(DeviceSpec::Cuda(3).to_tch(), Device::Cuda(3));
    }

    #[test]
    fn a_device_without_index_or_of_unknown_type_is_refused_with_the_valid_forms() {
        for text in ["cuda", "cuda:", "cuda:-1", "cuda:+1", "cuda:999", "CPU", "gpu", ""] {
            let error = text.parse::<DeviceSpec>().expect_err(text);
            assert!(error.to_string().contains("`cuda:<index>`"), "{error}");
        }
    }
}
