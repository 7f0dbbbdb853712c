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

#[test]
fn the_environment_turns_mixed_precision_off_over_all_else_and_says_nothing_else() {
    let set = |path: &str| Override::flag("--set", path, "bf16");
    let laid = with_word(&[set("training.amp"), set("name")], Some("off".into())).expect("a word that is known");

    let laid: Vec<_> = laid
        .iter()
        .map(|over| (over.path.as_str(), over.value.as_str()))
        .collect();
    assert_eq!(
        laid,
        [("name", "bf16"), ("training.amp", "off"), ("learner.amp", "off")]
    );
    assert_eq!(with_word(&[set("training.amp")], None).map(|laid| laid.len()), Ok(1));
    assert!(with_word(&[], Some("bf16".into())).is_err());
}
