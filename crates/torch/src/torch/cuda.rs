//! CUDA at run time: one binary serves machines with and without it.
//!
//! The engine links libtorch's CPU part only. Where a scenario asks for a CUDA device, the CUDA part is opened before
//! libtorch is used for anything else; it registers itself with the CPU part. CPU runs never come here.

use tch::Cuda;

/// The reason why CUDA devices cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum CudaError {
    #[error(
        "the run asks for `cuda:{index}`, but libtorch's CUDA part cannot be opened ({reason}); run `make setup-cuda`, or choose `cpu`"
    )]
    Missing { index: usize, reason: String },
    #[error(
        "the run asks for `cuda:{index}`, but libtorch finds no usable GPU or driver on this machine; choose `cpu`"
    )]
    NoDevice { index: usize },
    #[error("the run asks for `cuda:{index}`, but this machine has only {}, counted from 0", crate::files::counted(.count, "CUDA device"))]
    OutOfRange { index: usize, count: usize },
    #[error(
        "a deterministic run on `cuda:{index}` needs a fixed workspace of cuBLAS; start the program with CUBLAS_WORKSPACE_CONFIG=:4096:8 in its environment"
    )]
    NoWorkspace { index: usize },
}

/// Streams that libtorch has of each device. It hands them out one after another.
pub const POOL_STREAMS: usize = 32;

/// Gives cuBLAS the fixed workspace that reproducible products need, unless the user chose one: libtorch refuses them
/// without. Returns whether one is set.
///
/// It takes 32 MiB per thread and stream, on any card, also in runs that aren't deterministic.
///
/// The environment may only be changed while no other thread can read it. So this does nothing once the process has a second
/// thread: call it before one is started, or set `CUBLAS_WORKSPACE_CONFIG=:4096:8` outside.
pub fn fix_cublas_workspace() -> bool {
    if std::env::var_os(WORKSPACE_VARIABLE).is_some() {
        return true;
    }
    let is_alone = is_single_threaded();
    if is_alone {
        // SAFETY: this thread is the only one, so nothing reads the environment at the same time.
        unsafe { std::env::set_var(WORKSPACE_VARIABLE, WORKSPACE) };
    }
    is_alone
}

/// Returns whether the process has one thread; false if that is not known.
fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Opens libtorch's CUDA part and checks that a device of each of `indices` exists. With `deterministic` cuBLAS must have
/// a fixed workspace ([`fix_cublas_workspace`]).
///
/// Call this before anything else touches libtorch: it looks for CUDA once.
pub fn load_cuda(indices: &[usize], deterministic: bool) -> Result<(), CudaError> {
    let Some(&first) = indices.first() else {
        return Ok(());
    };
    if deterministic && !fix_cublas_workspace() {
        return Err(CudaError::NoWorkspace { index: first });
    }
    open_libtorch_cuda().map_err(|reason| CudaError::Missing { index: first, reason })?;
    if !Cuda::is_available() {
        return Err(CudaError::NoDevice { index: first });
    }
    let count = usize::try_from(Cuda::device_count()).unwrap_or(0);
    match indices.iter().find(|&&index| index >= count) {
        Some(&index) => Err(CudaError::OutOfRange { index, count }),
        None => Ok(()),
    }
}

const WORKSPACE_VARIABLE: &str = "CUBLAS_WORKSPACE_CONFIG";
/// Eight buffers of 4 MiB.
const WORKSPACE: &str = ":4096:8";

/// Opens the library for the rest of the process: libtorch keeps pointers into it.
#[cfg(unix)]
fn open_libtorch_cuda() -> Result<(), String> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

    // SAFETY: the initialisers of libtorch_cuda register kernels and expect nothing but a loaded libtorch_cpu, which
    // this binary is linked with.
    let library = unsafe { Library::open(Some("libtorch_cuda.so"), RTLD_NOW | RTLD_GLOBAL) };
    let library = library.map_err(|error| reason_of(&error))?;
    std::mem::forget(library);
    Ok(())
}

#[cfg(not(unix))]
fn open_libtorch_cuda() -> Result<(), String> {
    Err("CUDA devices are supported on Linux only".into())
}

/// The reason why a library cannot be opened: libloading's own text says only that it failed, the loader's names the cause.
pub(super) fn reason_of(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
