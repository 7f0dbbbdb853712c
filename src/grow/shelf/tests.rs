use super::*;

/// A lock belongs to an open file, so it excludes a second opener in the same process like one in another process.
#[test]
fn a_folder_in_which_somebody_grows_is_never_taken_even_by_force() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("grown");
    let attempt = folder.join("attempt1.json");
    let opened = |budget: &str, is_forced| {
        let ordered = Ordered::from([("--budget".into(), budget.into())]);
        open(&folder, &ordered, is_forced)
    };
    let refused = |budget: &str, is_forced| opened(budget, is_forced).unwrap_err().to_string();
    // Nothing was played under this order.
    drop(opened("2x", false).unwrap());
    let held = opened("3x", false).unwrap();
    fs::write(&attempt, "{}").unwrap();

    for is_forced in [false, true] {
        let why = refused("3x", is_forced);
        assert!(why.ends_with("grown is in use by another process that grows"), "{why}");
    }
    drop(held);
    drop(opened("3x", false).unwrap());
    let other = refused("4x", false);
    assert!(other.contains("--budget was 3x, now 4x"), "{other}");
    assert!(attempt.exists(), "nothing is removed unless it is asked for");
    fs::write(folder.join("notes.txt"), "the user's").unwrap();
    assert!(refused("3x", false).contains("holds notes.txt"));
    opened("4x", true).unwrap();
    assert!(!attempt.exists());
}
