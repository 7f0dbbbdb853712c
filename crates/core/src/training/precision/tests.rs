use super::*;

const BF16: TrainingPrecision = TrainingPrecision(Some(Kind::BFloat16));

#[test]
fn a_cpu_begins_every_batch_in_lower_precision_and_another_device_after_steps_whose_losses_were_finite() {
    for (device, nonfinite_batches, expected) in [
        (Device::Cpu, 0, Some(Kind::BFloat16)),
        (Device::Cpu, 2, Some(Kind::BFloat16)),
        (Device::Cuda(0), 0, Some(Kind::BFloat16)),
        (Device::Cuda(0), 1, None),
    ] {
        assert_eq!(BF16.at_first(device, nonfinite_batches), expected, "{device:?}");
    }
    assert_eq!(TrainingPrecision(None).at_first(Device::Cuda(0), 1), None);
}
