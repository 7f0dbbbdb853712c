//! The tensors of a network as PyTorch loads them into the exported classes.

use safetensors::tensor::{Dtype, TensorView, serialize};

use super::ExportError;
use super::python::Names;
use crate::network::GrownNetwork;

/// Batches that a batch norm has seen, which its `state_dict` counts: nothing reads it while momentum is fixed.
const BATCHES_SEEN: [u8; 8] = 0_i64.to_le_bytes();

/// The file of the `state_dict`.
pub(super) fn encode(network: &GrownNetwork, names: &Names) -> Result<Vec<u8>, ExportError> {
    let mut views = Vec::new();
    for (name, tensor) in &network.parameters {
        let name = names.of_tensor(name);
        if let Some(norm) = name.strip_suffix("running_mean") {
            let counter = TensorView::new(Dtype::I64, Vec::new(), &BATCHES_SEEN)?;
            views.push((format!("{norm}num_batches_tracked"), counter));
        }
        views.push((
            name,
            TensorView::new(Dtype::F32, tensor.shape().to_vec(), tensor.bytes())?,
        ));
    }
    Ok(serialize(views, None)?)
}
