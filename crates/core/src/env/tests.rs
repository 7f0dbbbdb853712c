use tch::Device;

use super::*;
use crate::scenario::Kernels;

#[test]
fn five_envs_take_turns_on_two_devices() {
    let devices = [0, 1].map(|index| Backend::new(Device::Cuda(index), Kernels::Own));
    let devices = Devices(devices.to_vec());

    let assigned: Vec<Device> = (0..5).map(|env| devices.of_env(env).device).collect();

    assert_eq!(assigned, [0, 1, 0, 1, 0].map(Device::Cuda));
}
