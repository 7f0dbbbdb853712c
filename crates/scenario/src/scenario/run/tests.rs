use super::*;

use DeviceSpec::{Cpu, Cuda};

/// Envs on `devices`, the policy on `policy`.
fn scenario(devices: &[DeviceSpec], policy: Option<DeviceSpec>) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.run.devices = devices.to_vec();
    scenario.policy.device = policy;
    scenario
}

#[test]
fn the_devices_of_a_run_are_those_of_its_envs_and_of_its_policy_each_once() {
    let alone = scenario(&[Cuda(1), Cpu, Cpu], None);
    assert_eq!((alone.devices(), alone.policy_device()), (vec![Cuda(1), Cpu], Cuda(1)));
    assert_eq!(alone.cuda_devices(), [1]);

    let elsewhere = scenario(&[Cuda(1), Cpu], Some(Cuda(0)));
    assert_eq!(elsewhere.policy_device(), Cuda(0));
    assert_eq!(elsewhere.devices(), [Cuda(1), Cpu, Cuda(0)]);
    assert_eq!(elsewhere.cuda_devices(), [1, 0]);
}

#[test]
fn hosts_on_a_cpu_are_multiplied_exactly_wherever_the_policy_is() {
    let precision = |scenario: &Scenario| scenario.run.matmul_precision_in_force();

    assert_eq!(precision(&scenario(&[Cpu], Some(Cuda(0)))), MatmulPrecision::Highest);
    assert_eq!(precision(&scenario(&[Cuda(0)], Some(Cpu))), MatmulPrecision::High);
}
