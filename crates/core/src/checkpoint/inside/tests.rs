use super::*;

#[test]
fn a_checkpoint_is_due_by_steps_and_by_time() {
    let minute = Duration::from_secs(60);

    assert!(is_due(Some(3), 6, minute));
    assert!(!is_due(Some(3), 7, 9 * minute));
    assert!(is_due(Some(3), 7, 10 * minute));
    assert!(!is_due(None, 6, 9 * minute));
    assert!(is_due(None, 7, 10 * minute));
}
