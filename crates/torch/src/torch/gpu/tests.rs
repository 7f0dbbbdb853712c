use super::*;

#[test]
fn of_a_device_that_is_not_there_nothing_is_known() {
    assert_eq!(gpu(99), None);
    assert_eq!(gpu(usize::MAX), None);
}
