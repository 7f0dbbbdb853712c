//! CUDA graphs: one call repeats work that was once queued in a stream, and costs the host one launch.
//!
//! The engine links nothing of CUDA, so a separate library calls libtorch's CUDA part (`graphs.cpp`). A build has its
//! bytes in here; they are opened for the first capture, after [`load_cuda`](super::load_cuda) has opened that part.

use std::ffi::{CStr, c_char};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;
use tch::Cuda;

use super::TorchError;
use super::cuda::reason_of;
use super::ffi::Opaque;

/// Work of a device that was captured from a stream, with the memory it computes in.
#[derive(Debug)]
pub struct Graph {
    functions: &'static Functions,
    raw: *mut Opaque,
}

// SAFETY: libtorch ties a capture to the thread that began it, but no graph; as `Graph` is not `Sync`, one thread uses it
// at a time.
unsafe impl Send for Graph {}

/// libtorch's generators know of one capture.
static CAPTURES: Mutex<()> = Mutex::new(());

impl Graph {
    /// Captures the work that `body` queues in this thread's current stream, which must be one of the pool
    /// ([`Stream`](super::Stream)). It isn't computed before [`Self::replay`]. The body runs once, ends in its first stream,
    /// and doesn't capture, replay or wait for the device. While it runs, no thread can draw random numbers of CUDA.
    ///
    /// With `pool_of` both graphs compute in the same memory: they are replayed one after the other, in the order of their
    /// captures, and results of the first are read before the second is replayed.
    ///
    /// # Errors
    /// The reason of [`graphs_unavailable`], where `body` is not run; `body`'s error, unchanged ([`capture_error`] sorts it);
    /// work that CUDA does not capture. Except where memory is missing or the device is lost, eager work can continue.
    pub fn capture<E: From<TorchError>>(
        pool_of: Option<&Self>,
        body: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, E> {
        let functions = functions().map_err(capture_error)?;
        let _alone = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
        let graph = Self::begin(functions, pool_of)?;
        let outcome = catch_unwind(AssertUnwindSafe(body));
        // SAFETY: `begin` has begun it on this thread, and nothing has ended it.
        let ended = unsafe { check((functions.end)(graph.raw)) };
        match outcome {
            Ok(outcome) => outcome?,
            Err(panic) => resume_unwind(panic),
        }
        ended.map_err(capture_error)?;
        Ok(graph)
    }

    fn begin(functions: &'static Functions, pool_of: Option<&Self>) -> Result<Self, TorchError> {
        let pool_of = pool_of.map_or(ptr::null_mut(), |graph| graph.raw);
        let mut raw = ptr::null_mut();
        // SAFETY: the pool's graph is borrowed through the call, `raw` lives through it.
        unsafe { check((functions.begin)(pool_of, &mut raw)) }.map_err(capture_error)?;
        Ok(Self { functions, raw })
    }

    /// Queues the work in the current stream, on the values that its tensors have at that time.
    ///
    /// # Errors
    /// A device error.
    pub fn replay(&self) -> Result<(), TorchError> {
        // SAFETY: `capture` has ended it without an error.
        unsafe { check((self.functions.replay)(self.raw)) }.map_err(TorchError::classify)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: `begin` made it, and it is freed nowhere else.
        unsafe { (self.functions.free)(self.raw) }
    }
}

/// Words that classify as a fault of the device, and their meaning in a capture, where nothing is executed.
const OF_CAPTURE: [(&str, &str); 2] = [("CUDA error", "CUDA"), ("_STATUS_EXECUTION_FAILED", " did not execute")];

/// Error of a capture, by its text: CUDA says the same of work that cannot be captured as of a device that has failed.
/// An error that stays a fault here is one of earlier work.
pub fn capture_error(message: impl AsRef<str>) -> TorchError {
    let mut message = message.as_ref().to_owned();
    for (said, meant) in OF_CAPTURE {
        message = message.replace(said, meant);
    }
    match TorchError::classify(message) {
        TorchError::Other(message) => TorchError::Other(format!("CUDA graph: {message}")),
        classified => classified,
    }
}

/// The reason why nothing can be captured in this process; `None` where it can. Call it after [`load_cuda`](super::load_cuda).
pub fn graphs_unavailable() -> Option<String> {
    functions().err()
}

/// The library, empty where the build found no headers of CUDA.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libsimic_graphs.so"));

/// The functions of `graphs.cpp`.
#[derive(Debug)]
struct Functions {
    begin: unsafe extern "C" fn(*mut Opaque, *mut *mut Opaque) -> *const c_char,
    end: unsafe extern "C" fn(*mut Opaque) -> *const c_char,
    replay: unsafe extern "C" fn(*mut Opaque) -> *const c_char,
    free: unsafe extern "C" fn(*mut Opaque),
}

/// # Safety
/// `error` was returned by a function of the library that this thread has called last.
unsafe fn check(error: *const c_char) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a text of the library ends with NUL, and is this thread's until its next error.
    Err(unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned())
}

fn functions() -> Result<&'static Functions, String> {
    static OPENED: OnceLock<Result<Functions, String>> = OnceLock::new();
    if LIBRARY.is_empty() {
        return Err(
            "the engine was built without CUDA's headers; remove `.libtorch`, run `make setup-cuda` and build it again"
                .into(),
        );
    }
    if !Cuda::is_available() {
        return Err("this process has opened no CUDA device".into());
    }
    OPENED.get_or_init(open).as_ref().map_err(Clone::clone)
}

/// Opens the library for the rest of the process.
fn open() -> Result<Functions, String> {
    let path = file_of_library().map_err(|error| format!("its library could not be written: {error}"))?;
    // SAFETY: its initialisers are the C++ library's. What it takes from libtorch is looked for now (`-z now`).
    let library = unsafe { Library::new(path) }.map_err(|error| reason_of(&error))?;
    let functions = load(&library).map_err(|error| reason_of(&error))?;
    std::mem::forget(library);
    Ok(functions)
}

fn load(library: &Library) -> Result<Functions, libloading::Error> {
    // SAFETY: the types are those of `graphs.cpp`, and `open` never closes the library.
    unsafe {
        Ok(Functions {
            begin: *library.get(c"simic_graph_begin")?,
            end: *library.get(c"simic_graph_end")?,
            replay: *library.get(c"simic_graph_replay")?,
            free: *library.get(c"simic_graph_free")?,
        })
    }
}

/// The path of a file in memory, since folders for temporary files may forbid programs. It stays open, so that the path
/// names no other file later.
#[cfg(target_os = "linux")]
fn file_of_library() -> io::Result<String> {
    use std::ffi::{c_int, c_uint};
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::{FromRawFd, IntoRawFd};

    unsafe extern "C" {
        fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    }
    const CLOSED_ON_EXEC: c_uint = 1;
    // SAFETY: the C library's own declaration, and a name that ends with NUL.
    let descriptor = unsafe { memfd_create(c"simic_graphs".as_ptr(), CLOSED_ON_EXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was opened just now, and nothing else owns it.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(LIBRARY)?;
    Ok(format!("/proc/self/fd/{}", file.into_raw_fd()))
}

#[cfg(not(target_os = "linux"))]
fn file_of_library() -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests;
