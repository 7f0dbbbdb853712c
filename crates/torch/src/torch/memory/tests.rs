use super::*;

#[test]
fn libtorch_does_not_count_the_memory_of_a_cpu_nor_that_of_a_device_that_is_not_there() {
    for device in [Device::Cpu, Device::Cuda(99)] {
        reset_peak_memory(device);
        assert_eq!(device_memory(device), None);
        assert_eq!(free_bytes(device), None);
    }
}
