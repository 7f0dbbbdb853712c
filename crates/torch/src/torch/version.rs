//! The version of libtorch that this process has loaded.

use super::ffi;

/// Version of the libtorch in use, e.g. `2.11.0`: what the loaded library says, not the headers that the engine was built with.
pub fn libtorch_version() -> String {
    // One byte each, from the highest on; the lower bytes are those of its interface for extensions.
    let [major, minor, patch, ..] = ffi::aoti_torch_abi_version().to_be_bytes();
    format!("{major}.{minor}.{patch}")
}
