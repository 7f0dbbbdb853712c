use super::*;

#[test]
fn folders_and_links_are_not_replaced_and_nothing_lies_next_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let [file, link] = ["status.json", "linked.json"].map(|name| folder.path().join(name));
    fs::create_dir(&file).unwrap();
    symlink("status.json", &link).unwrap();

    assert!(replace_synced(&file, b"new").is_err());
    assert!(replace_synced(&link, b"new").is_err() && replace_folder(&link, &[]).is_err());

    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 2);
    assert!(file.is_dir() && link.is_symlink());
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let [other, link] = ["other", "status.json.tmp"].map(|name| folder.path().join(name));
    fs::write(&other, "kept").unwrap();
    symlink("other", &link).unwrap();

    assert!(write_synced(&link, b"new").is_err());
    let opened = [File::append(&link), File::append_or_create(&link), File::change(&link)];
    assert!(opened.iter().all(Result::is_err), "{opened:?}");
    assert_eq!(fs::read(&other).unwrap(), b"kept");
}

#[test]
fn a_file_without_a_folder_is_in_the_present_one() {
    assert!(sync_folder_of(Path::new("status.json")).is_ok());
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_system_that_does_not_answer_has_not_lost_the_run() {
    let [no_entry, no_folder] = [2, 20].map(io::Error::from_raw_os_error);
    let [io_error, no_permission, stale_handle] = [5, 13, 116].map(io::Error::from_raw_os_error);

    assert!([no_entry, no_folder].iter().all(says_gone));
    assert!(![io_error, no_permission, stale_handle].iter().any(says_gone));
}
