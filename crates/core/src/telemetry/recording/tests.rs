use super::*;

#[test]
fn what_is_missing_is_named() {
    let root = tempfile::tempdir().unwrap();
    let why = |folder: &Path| read_recording(folder, |_| ()).unwrap_err().to_string();

    assert!(why(&root.path().join("gone")).starts_with("there is no run "));
    assert!(why(root.path()).contains("holds no events of a run"));
    let header = "{\"type\":\"header\",\"schema\":1}\n";
    std::fs::write(root.path().join("events.jsonl"), header).unwrap();
    assert!(why(root.path()).contains("holds no events of a run"));
}
