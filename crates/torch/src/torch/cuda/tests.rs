use super::*;

#[test]
fn a_run_without_cuda_devices_opens_nothing() {
    assert_eq!(load_cuda(&[], false), Ok(()));
}

#[test]
fn messages_name_the_device_and_the_way_out() {
    let reason = "no such file".into();
    let missing = CudaError::Missing { index: 1, reason }.to_string();
    assert!(missing.contains("cuda:1"), "{missing}");
    assert!(missing.contains("make setup-cuda"), "{missing}");
    let beyond = CudaError::OutOfRange { index: 4, count: 2 }.to_string();
    assert!(beyond.contains("only 2 CUDA devices, counted"), "{beyond}");
    let unset = CudaError::NoWorkspace { index: 0 }.to_string();
    assert!(unset.contains("CUBLAS_WORKSPACE_CONFIG=:4096:8"), "{unset}");
}

#[test]
fn the_workspace_of_cublas_is_not_set_while_other_threads_may_read_the_environment() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || wait.recv());

    // If it is set outside, there is nothing to do.
    let is_set_outside = std::env::var_os(WORKSPACE_VARIABLE).is_some();
    assert_eq!(fix_cublas_workspace(), is_set_outside);
    assert_eq!(std::env::var_os(WORKSPACE_VARIABLE).is_some(), is_set_outside);

    drop(release);
    assert!(other.join().is_ok());
}
