use super::*;

#[test]
fn devices_are_read_as_they_are_printed() {
    for (text, device) in [
        ("cpu", DeviceSpec::Cpu),
        ("cuda:0", DeviceSpec::Cuda(0)),
        ("cuda:11", DeviceSpec::Cuda(11)),
    ] {
        assert_eq!(text.parse(), Ok(device));
        assert_eq!(device.to_string(), text);
    }
}

#[test]
fn a_device_without_index_or_of_unknown_type_is_refused_with_the_valid_forms() {
    for text in ["cuda", "cuda:", "cuda:-1", "cuda:+1", "cuda:999", "CPU", "gpu", ""] {
        let error = text.parse::<DeviceSpec>().expect_err(text);
        assert!(error.to_string().contains("`cuda:<index>`"), "{error}");
    }
}
