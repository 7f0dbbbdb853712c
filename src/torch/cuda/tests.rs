use super::*;

#[test]
fn a_run_without_cuda_devices_opens_nothing() {
    assert_eq!(load_cuda(&[], false), Ok(()));
}

#[test]
fn messages_name_the_device_and_the_way_out() {
    let missing = CudaError::Missing {
        index: 1,
        reason: "no such file".into(),
    };
    assert!(missing.to_string().contains("cuda:1"));
    assert!(missing.to_string().contains("make setup-cuda"));
    let beyond = CudaError::OutOfRange { index: 4, count: 2 };
    assert!(beyond.to_string().contains("only 2 CUDA device(s)"));
}
