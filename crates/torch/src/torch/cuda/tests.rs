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

#[test]
fn a_missing_workspace_is_named_with_the_way_to_set_it() {
    let message = CudaError::NoWorkspace { index: 0 }.to_string();
    assert!(message.contains("CUBLAS_WORKSPACE_CONFIG=:4096:8"), "{message}");
}
