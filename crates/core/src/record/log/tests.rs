use super::*;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn lines_from_before_the_run_directory_are_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = LogFile::default();

    log.write_all(b"early\n").unwrap();
    log.move_into(folder.path()).unwrap();
    log.clone().write_all(b"late\n").unwrap();

    assert_eq!(read(&folder.path().join("log.txt")), "early\nlate\n");
}

#[test]
fn a_file_that_the_user_named_is_appended_to_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.log");
    std::fs::write(&path, "before\n").unwrap();

    let mut log = LogFile::at(&path).unwrap();
    log.move_into(folder.path()).unwrap();
    log.write_all(b"now\n").unwrap();

    assert_eq!(read(&path), "before\nnow\n");
    assert!(!folder.path().join("log.txt").exists());
}
