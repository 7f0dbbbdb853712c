use super::*;

#[test]
fn a_folder_is_replaced_as_a_whole() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("policy");
    write_folder(&folder, &[("a", b"1"), ("b", b"2")]).unwrap();
    write_folder(&folder, &[("a", b"3")]).unwrap();
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"3");
    assert!(!folder.join("b").exists());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn what_was_read_stays_though_the_folder_goes() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("saved");
    save_controller(&folder, "schedule", None).unwrap();

    let saved = SavedFolder::read(&folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();

    assert_eq!(check_controller(&saved, "schedule", None), Ok(()));
    let missing = saved.file("weights").unwrap_err().to_string();
    assert_eq!(missing, format!("{}/weights: there is no such file", folder.display()));
}

#[test]
fn another_controller_is_refused_with_every_difference() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("saved");
    save_controller(&folder, "schedule", Some("abc")).unwrap();
    let folder = SavedFolder::read(&folder).unwrap();
    assert_eq!(check_controller(&folder, "schedule", Some("abc")), Ok(()));
    let error = check_controller(&folder, "random", None).unwrap_err().to_string();
    let differences = "does not fit this run:\n  controller: saved \"schedule\", running \"random\"\n  \
                       fingerprint: saved Some(\"abc\"), running None";
    assert!(error.ends_with(differences), "{error}");
}

#[test]
fn a_field_that_no_controller_saves_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("saved");
    let text = "(format: 1, name: \"heuristic\", fingerprint: None, state: {})";
    write_folder(&folder, &[(CONTROLLER_FILE, text.as_bytes())]).unwrap();

    let folder = SavedFolder::read(&folder).unwrap();

    let refused = check_controller(&folder, "heuristic", None).unwrap_err().to_string();
    assert!(refused.contains("`state`"), "{refused}");
}
