use super::*;

#[test]
fn a_file_system_without_locks_is_distinguished_from_a_failure() {
    let [no_such_call, not_supported, no_locks] = [38, 95, 37].map(Error::from_raw_os_error);
    let [bad_descriptor, io_error] = [9, 5].map(Error::from_raw_os_error);

    assert!([no_such_call, not_supported, no_locks].iter().all(has_no_locks));
    assert!(![bad_descriptor, io_error].iter().any(has_no_locks));
}
