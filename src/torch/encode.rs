//! Tensors as the bytes of a safetensors file: whoever writes them chooses how.

use safetensors::tensor::{Dtype, TensorView, serialize};
use tch::{Device, Kind, Tensor};

use super::TorchError;

/// Named tensors of any device as a safetensors file holds them, bit for bit.
///
/// # Errors
/// A device error, or a kind of number that the format does not have.
pub fn encode_tensors(tensors: &[(String, Tensor)]) -> Result<Vec<u8>, TorchError> {
    let contents: Vec<Content> = tensors.iter().map(Content::of).collect::<Result<_, _>>()?;
    let views = contents.iter().map(|content| {
        let view = TensorView::new(content.kind, content.shape.clone(), &content.bytes)?;
        Ok((content.name, view))
    });
    views
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .and_then(|views| serialize(views, None))
        .map_err(|error| TorchError::Other(error.to_string()))
}

struct Content<'a> {
    name: &'a str,
    kind: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl<'a> Content<'a> {
    #[expect(
        clippy::disallowed_methods,
        reason = "files are written between steps, where the engine may wait"
    )]
    fn of((name, tensor): &'a (String, Tensor)) -> Result<Self, TorchError> {
        let tensor = tensor.f_to_device(Device::Cpu)?.f_contiguous()?;
        let kind = tensor.f_kind()?;
        let mut bytes = vec![0; tensor.numel() * kind.elt_size_in_bytes()];
        tensor.f_copy_data_u8(&mut bytes, tensor.numel())?;
        Ok(Self {
            name,
            kind: saved_kind(kind)?,
            shape: tensor.size().into_iter().map(|size| size as usize).collect(),
            bytes,
        })
    }
}

fn saved_kind(kind: Kind) -> Result<Dtype, TorchError> {
    Ok(match kind {
        Kind::Bool => Dtype::BOOL,
        Kind::Uint8 => Dtype::U8,
        Kind::Int => Dtype::I32,
        Kind::Int64 => Dtype::I64,
        Kind::Half => Dtype::F16,
        Kind::BFloat16 => Dtype::BF16,
        Kind::Float => Dtype::F32,
        Kind::Double => Dtype::F64,
        other => return Err(TorchError::Other(format!("tensors of {other:?} cannot be saved"))),
    })
}
