//! The precision of computation: process-wide switches, set once at start, and the type that mixed precision resolves to.

use tch::Kind;

use super::{TorchError, ffi};
use crate::scenario::{AmpMode, MatmulPrecision};

/// Sets the precision of f32 matrix products and, below `highest`, lets cuDNN use TF32.
///
/// Process-wide. The lower ones are meant for CUDA: on a CPU they may mean bf16 arithmetic.
pub fn set_matmul_precision(precision: MatmulPrecision) -> Result<(), TorchError> {
    let name = match precision {
        MatmulPrecision::Highest => c"highest",
        MatmulPrecision::High => c"high",
        MatmulPrecision::Medium => c"medium",
    };
    // SAFETY: `name` is a NUL-terminated constant.
    unsafe { ffi::check(ffi::simic_set_matmul_precision(name.as_ptr())) }
}

/// Restricts libtorch to deterministic kernels and turns cuDNN's autotuning off. Process-wide.
///
/// cuBLAS also needs a fixed workspace, see [`fix_cublas_workspace`](super::fix_cublas_workspace).
pub fn set_deterministic(on: bool) -> Result<(), TorchError> {
    // SAFETY: no pointers are passed.
    unsafe { ffi::check(ffi::simic_set_deterministic(on)) }
}

/// Number format of mixed precision, on CUDA or on a CPU; `None`: f32 throughout. `auto` is f32 on a CPU; a format requested
/// by name is used wherever it runs. `field` names the setting. Call it only once CUDA has been loaded if there is any.
pub fn mixed_kind(field: &str, mode: AmpMode, on_cuda: bool) -> Option<Kind> {
    match mode {
        AmpMode::Off => None,
        AmpMode::Bf16 => Some(Kind::BFloat16),
        AmpMode::Fp16 => Some(Kind::Half),
        AmpMode::Auto if !on_cuda => {
            tracing::warn!(
                "{field}: auto means f32 except on CUDA; bf16 or fp16, if you set it, is used elsewhere too"
            );
            None
        }
        AmpMode::Auto if ffi::simic_cuda_computes_bf16() => Some(Kind::BFloat16),
        AmpMode::Auto => Some(Kind::Half),
    }
}

/// Name in records of a precision from [`mixed_kind`]; `None` for f32.
pub fn mixed_name(kind: Option<Kind>) -> Option<&'static str> {
    kind.map(|kind| match kind {
        Kind::Half => AmpMode::Fp16.name(),
        _ => AmpMode::Bf16.name(),
    })
}

#[cfg(test)]
mod tests;
