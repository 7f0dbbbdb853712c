//! Tensors as plain bytes and as the bytes of a safetensors file; the caller chooses how to write them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use tch::{Device, Kind, Tensor};

use super::TorchError;

/// The values of a tensor, bit for bit and row-major, without a device.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainTensor {
    kind: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl PlainTensor {
    /// The values of a tensor of any shape, kind and device; waits for them, in the order of the stream that is entered.
    ///
    /// # Errors
    /// A device error, or a kind of number that files do not hold.
    #[expect(
        clippy::disallowed_methods,
        reason = "files are written between steps, where the engine may wait"
    )]
    pub fn of(tensor: &Tensor) -> Result<Self, TorchError> {
        let tensor = tensor.f_detach()?.f_to_device(Device::Cpu)?.f_contiguous()?;
        let kind = tensor.f_kind()?;
        let mut bytes = vec![0; tensor.numel() * kind.elt_size_in_bytes()];
        tensor.f_copy_data_u8(&mut bytes, tensor.numel())?;
        Ok(Self {
            kind: saved_kind(kind)?,
            shape: tensor.size().into_iter().map(|size| size as usize).collect(),
            bytes,
        })
    }

    /// A tensor on the CPU that holds them, of any shape: it has the shape and kind of these values.
    ///
    /// # Errors
    /// Out of memory.
    pub fn to_tensor(&self) -> Result<Tensor, TorchError> {
        let shape: Vec<i64> = self.shape.iter().map(|&size| size as i64).collect();
        Ok(Tensor::f_from_data_size(&self.bytes, &shape, loaded_kind(self.kind)?)?)
    }

    /// The values, row-major and little-endian.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Sizes of its dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of values.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether a tensor, of any kind and on any device, has its shape.
    pub fn is_of_shape(&self, tensor: &Tensor) -> bool {
        self.shape.iter().map(|&size| size as i64).eq(tensor.size())
    }

    /// Returns whether a tensor, of any shape and on any device, has its shape and kind.
    pub fn fits(&self, tensor: &Tensor) -> bool {
        self.is_of_shape(tensor) && loaded_kind(self.kind).is_ok_and(|kind| kind == tensor.kind())
    }
}

/// Prints kind and shape, as values are many.
impl fmt::Debug for PlainTensor {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?} {:?}", self.kind, self.shape)
    }
}

/// Named tensors of any device as a safetensors file holds them, bit for bit.
///
/// # Errors
/// A device error, or a kind of number that the format does not have.
pub fn encode_tensors(tensors: &[(String, Tensor)]) -> Result<Vec<u8>, TorchError> {
    let plain = tensors
        .iter()
        .map(|(name, tensor)| Ok((name.as_str(), PlainTensor::of(tensor)?)));
    let plain: Vec<(&str, PlainTensor)> = plain.collect::<Result<_, TorchError>>()?;
    encode_plain(plain.iter().map(|(name, tensor)| (*name, tensor)))
}

/// Named values as a safetensors file holds them.
///
/// # Errors
/// More of them than the format can describe.
pub fn encode_plain<'a>(tensors: impl IntoIterator<Item = (&'a str, &'a PlainTensor)>) -> Result<Vec<u8>, TorchError> {
    encode(tensors, None)
}

/// Encodes named values with a text under `key` of the file's metadata.
///
/// # Errors
/// Those of [`encode_plain`].
pub fn encode_described<'a>(
    tensors: impl IntoIterator<Item = (&'a str, &'a PlainTensor)>,
    key: &str,
    text: String,
) -> Result<Vec<u8>, TorchError> {
    encode(tensors, Some(HashMap::from([(key.to_owned(), text)])))
}

fn encode<'a>(
    tensors: impl IntoIterator<Item = (&'a str, &'a PlainTensor)>,
    metadata: Option<HashMap<String, String>>,
) -> Result<Vec<u8>, TorchError> {
    let views = tensors.into_iter().map(|(name, tensor)| {
        let view = TensorView::new(tensor.kind, tensor.shape.clone(), &tensor.bytes)?;
        Ok((name, view))
    });
    views
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .and_then(|views| serialize(views, metadata))
        .map_err(|error| TorchError::Other(error.to_string()))
}

/// Tensors in the bytes of a safetensors file, by name.
///
/// # Errors
/// Bytes that aren't such a file.
pub fn decode_plain(bytes: &[u8]) -> Result<BTreeMap<String, PlainTensor>, TorchError> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| TorchError::Other(error.to_string()))?;
    let plain = file.iter().map(|(name, view)| {
        let tensor = PlainTensor {
            kind: view.dtype(),
            shape: view.shape().to_vec(),
            bytes: view.data().to_vec(),
        };
        (name.to_owned(), tensor)
    });
    Ok(plain.collect())
}

/// Decodes tensors with the text under `key` of the file's metadata, if it is there.
///
/// # Errors
/// Those of [`decode_plain`].
pub fn decode_described(
    bytes: &[u8],
    key: &str,
) -> Result<(BTreeMap<String, PlainTensor>, Option<String>), TorchError> {
    let tensors = decode_plain(bytes)?;
    let header = SafeTensors::read_metadata(bytes).map_err(|error| TorchError::Other(error.to_string()))?;
    let text = header
        .1
        .metadata()
        .as_ref()
        .and_then(|metadata| metadata.get(key).cloned());
    Ok((tensors, text))
}

/// Kinds of number that are saved, and their names in files.
const KINDS: [(Kind, Dtype); 8] = [
    (Kind::Bool, Dtype::BOOL),
    (Kind::Uint8, Dtype::U8),
    (Kind::Int, Dtype::I32),
    (Kind::Int64, Dtype::I64),
    (Kind::Half, Dtype::F16),
    (Kind::BFloat16, Dtype::BF16),
    (Kind::Float, Dtype::F32),
    (Kind::Double, Dtype::F64),
];

fn saved_kind(kind: Kind) -> Result<Dtype, TorchError> {
    let saved = KINDS.iter().find(|(known, _)| *known == kind);
    let saved = saved.map(|(_, saved)| *saved);
    saved.ok_or_else(|| TorchError::Other(format!("tensors of {kind:?} cannot be saved")))
}

fn loaded_kind(saved: Dtype) -> Result<Kind, TorchError> {
    let kind = KINDS.iter().find(|(_, known)| *known == saved);
    let kind = kind.map(|(kind, _)| *kind);
    kind.ok_or_else(|| TorchError::Other(format!("tensors of {saved:?} cannot be loaded")))
}
