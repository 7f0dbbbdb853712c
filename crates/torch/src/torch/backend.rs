//! The device of tensors and the kernels that compute on them: passed to everything that builds a network.

use tch::Device;

use crate::scenario::{DeviceSpec, Kernels};

/// A device and the kernels that are used there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backend {
    /// The device of the tensors.
    pub device: Device,
    /// The kernels that the scenario chooses.
    pub kernels: Kernels,
}

impl Backend {
    /// The processor with the engine's own kernels.
    pub const CPU: Self = Self::new(Device::Cpu, Kernels::Own);

    /// A backend with `kernels` on `device`.
    pub const fn new(device: Device, kernels: Kernels) -> Self {
        Self { device, kernels }
    }

    /// Returns whether the engine's own kernels compute here. They are written for CPUs.
    pub const fn uses_own_kernels(self) -> bool {
        matches!((self.device, self.kernels), (Device::Cpu, Kernels::Own))
    }
}

/// The device that a scenario names.
pub const fn device_of(spec: DeviceSpec) -> Device {
    match spec {
        DeviceSpec::Cpu => Device::Cpu,
        DeviceSpec::Cuda(index) => Device::Cuda(index),
    }
}
