//! The device on which tests of tensors run: `SIMIC_ENGINE_TEST_DEVICE`, spelt as in a scenario; the CPU by default.
//! Elsewhere libtorch uses only reproducible kernels and f32. An invalid name ends the tests.

use std::sync::LazyLock;

use tch::{Device, Tensor};

use super::{Backend, device_of, load_cuda, set_deterministic, set_matmul_precision};
use crate::scenario::{DeviceSpec, Kernels, MatmulPrecision};

const VARIABLE: &str = "SIMIC_ENGINE_TEST_DEVICE";

static DEVICE: LazyLock<Device> = LazyLock::new(|| {
    let Some(text) = std::env::var_os(VARIABLE) else {
        return Device::Cpu;
    };
    let spec: Result<DeviceSpec, _> = text.to_string_lossy().parse();
    let spec = spec.unwrap_or_else(|error| panic!("{VARIABLE}: {error}"));
    if let DeviceSpec::Cuda(index) = spec {
        open_cuda(index).unwrap_or_else(|error| panic!("{VARIABLE}: {error}"));
    }
    device_of(spec)
});

fn open_cuda(index: usize) -> Result<(), String> {
    load_cuda(&[index], true).map_err(|error| error.to_string())?;
    let settings = set_deterministic(true).and_then(|()| set_matmul_precision(MatmulPrecision::Highest));
    settings.map_err(|error| error.to_string())
}

/// Runs before `main`: libtorch looks for CUDA once, which the first test on the CPU would trigger, and the workspace of
/// cuBLAS is fixed while there is one thread.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static IN_FRONT_OF_MAIN: extern "C" fn() = {
    extern "C" fn open() {
        test_device();
    }
    open
};

/// The device of the tests' tensors.
pub fn test_device() -> Device {
    *DEVICE
}

/// The same device with the engine's own kernels, which compute only on a CPU.
pub fn test_backend() -> Backend {
    Backend::new(test_device(), Kernels::Own)
}

/// An input on the device of the tests: the tensor itself where that is the CPU.
pub fn on_device(tensor: Tensor) -> Tensor {
    tensor.to_device(test_device())
}

/// The allowed distance of results from the expected ones: `cpu`, which is 0 where bits are compared, and `other` elsewhere.
pub fn tolerance(cpu: f64, other: f64) -> f64 {
    match test_device() {
        Device::Cpu => cpu,
        _ => other,
    }
}
