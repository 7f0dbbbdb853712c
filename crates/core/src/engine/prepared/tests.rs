use super::*;

#[test]
fn a_path_that_isnt_a_file_or_is_too_large_for_a_scenario_is_refused_unread() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.ron");
    let file = std::fs::File::create(&large).unwrap();
    file.set_len(LARGEST_TEXT + 1).unwrap();

    let large = read_text(&large).unwrap_err().to_string();
    let device = read_text(Path::new("/dev/zero")).unwrap_err().to_string();

    assert!(large.contains("larger than 16 MiB"), "{large}");
    assert!(device.contains("regular file"), "{device}");
}
