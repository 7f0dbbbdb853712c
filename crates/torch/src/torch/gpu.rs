//! The driver's data about a CUDA device. Its library is loaded at run time: libtorch has them only in CUDA's headers, without
//! which the engine compiles.

use std::ffi::{CStr, c_int};

use libloading::Library;
use serde::Serialize;

/// A CUDA device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// Name of the product.
    pub name: String,
    /// Version of the driver; `None` where the system does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Version of the architecture, `9.0`.
    pub compute_capability: String,
    /// All memory that it has.
    pub memory_bytes: u64,
}

/// The device `cuda:{index}`. `None` before [`load_cuda`](super::load_cuda) has begun CUDA, and where the driver does not say.
pub fn gpu(index: usize) -> Option<Gpu> {
    let index = c_int::try_from(index).ok()?;
    let (mut device, mut major, mut minor): (c_int, c_int, c_int) = (0, 0, 0);
    let mut name = [0_u8; 256];
    let mut bytes = 0_usize;
    // SAFETY: the types are those of cuda.h; what is written to lives through the calls, and no more of `name` than is said there.
    let answers = unsafe {
        let driver = Library::new("libcuda.so.1").ok()?;
        let device_of = driver.get::<GetDevice>(c"cuDeviceGet").ok()?;
        let name_of = driver.get::<GetName>(c"cuDeviceGetName").ok()?;
        let bytes_of = driver.get::<TotalMemory>(c"cuDeviceTotalMem_v2").ok()?;
        let attribute_of = driver.get::<GetAttribute>(c"cuDeviceGetAttribute").ok()?;
        [
            device_of(&mut device, index),
            name_of(name.as_mut_ptr(), name.len() as c_int, device),
            bytes_of(&mut bytes, device),
            attribute_of(&mut major, MAJOR, device),
            attribute_of(&mut minor, MINOR, device),
        ]
    };
    let name = CStr::from_bytes_until_nul(&name).ok()?;
    let driver = std::fs::read_to_string("/sys/module/nvidia/version").ok();
    (answers == [0; 5]).then(|| Gpu {
        name: name.to_string_lossy().into_owned(),
        driver: driver.map(|version| version.trim().into()),
        compute_capability: format!("{major}.{minor}"),
        memory_bytes: bytes as u64,
    })
}

// Functions of cuda.h; 0 is success.
type GetDevice = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type GetName = unsafe extern "C" fn(*mut u8, c_int, c_int) -> c_int;
type TotalMemory = unsafe extern "C" fn(*mut usize, c_int) -> c_int;
type GetAttribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` of cuda.h.
const MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR` of cuda.h.
const MINOR: c_int = 76;

#[cfg(test)]
mod tests;
