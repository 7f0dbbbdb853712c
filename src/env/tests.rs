use super::*;

#[test]
fn five_envs_take_turns_on_two_devices() {
    let devices = Devices(vec![Device::Cuda(0), Device::Cuda(1)]);

    let assigned: Vec<Device> = (0..5).map(|env| devices.of_env(env)).collect();

    assert_eq!(assigned, [0, 1, 0, 1, 0].map(Device::Cuda));
}
