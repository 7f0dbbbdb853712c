use super::*;

#[test]
fn a_file_that_cannot_be_replaced_is_as_it_was_and_nothing_lies_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("status.json");
    fs::create_dir(&path).unwrap();

    assert!(replace_synced(&path, b"new").is_err());

    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1);
    assert!(path.is_dir());
}

#[test]
fn a_file_without_a_folder_is_in_the_present_one() {
    assert!(sync_folder_of(Path::new("status.json")).is_ok());
}
