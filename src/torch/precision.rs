//! Process-wide arithmetic switches, set once at start, and what the processor can do.

use super::MatmulPrecision;
use super::TorchError;
use super::ffi;

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
/// cuBLAS needs a fixed workspace besides, see [`fix_cublas_workspace`](super::fix_cublas_workspace).
pub fn set_deterministic(on: bool) -> Result<(), TorchError> {
    // SAFETY: no pointers are passed.
    unsafe { ffi::check(ffi::simic_set_deterministic(on)) }
}

/// Whether the processor multiplies bf16 in hardware (AVX512-BF16), so that `amp` is worth its casts on CPU.
pub fn cpu_has_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

#[cfg(test)]
mod tests;
