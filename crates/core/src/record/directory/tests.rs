use super::*;

const NOW: Timestamp = Timestamp::from_milliseconds(1_700_000_000_005);

fn create(root: &Path) -> RunDirectory {
    RunDirectory::create(root, None, "Quick start!", b"// mine\n()", "(seed: 42)", NOW).unwrap()
}

/// A run, and the folder that it is in.
fn created() -> (tempfile::TempDir, RunDirectory) {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path());
    (root, run)
}

#[test]
fn a_run_is_named_by_time_scenario_and_hash_and_those_of_one_second_are_numbered() {
    let (root, run) = created();

    let hash = blake3::hash(b"(seed: 42)").to_hex();
    let id = format!("20231114-221320-quick-start-{}", &hash[..4]);
    assert_eq!((run.run_id(), run.scenario_hash()), (id.as_str(), hash.as_str()));
    for number in [2, 3] {
        assert_eq!(create(root.path()).run_id(), format!("{id}-{number}"));
    }
}

#[test]
fn the_scenario_is_kept_as_written_and_as_resolved() {
    let (_root, run) = created();

    let read = |name| std::fs::read_to_string(run.path().join(name)).unwrap();
    assert_eq!(read("scenario.ron"), "// mine\n()");
    assert_eq!(read("resolved.ron"), "(seed: 42)");
    assert!(read("status.json").contains("\"starting\""));
}

#[test]
fn latest_names_the_newest_run() {
    let (root, first) = created();

    first.become_latest();
    let second = create(root.path());
    second.become_latest();

    let latest = root.path().join("latest");
    assert_eq!(std::fs::read_to_string(&latest).unwrap().trim(), second.run_id());
    assert_eq!(crate::files::follow_latest(&latest), second.path());
}

/// Older engines noted runs so: a search that followed the link would find the newest run twice.
#[cfg(unix)]
#[test]
fn a_link_named_latest_becomes_a_file() {
    let (root, first) = created();
    std::os::unix::fs::symlink(first.run_id(), root.path().join("latest")).unwrap();

    create(root.path()).become_latest();

    assert!(!root.path().join("latest").is_symlink());
    assert!(first.path().join("scenario.ron").exists());
}

#[test]
fn a_folder_named_latest_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("latest")).unwrap();

    create(root.path()).become_latest();

    assert!(root.path().join("latest").is_dir());
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
}

#[test]
fn a_run_is_played_by_one_process_at_a_time() {
    let (_root, run) = created();

    let claim = run.claim().unwrap();
    let clone = claim.clone();
    drop(claim);

    let refused = run.claim().unwrap_err().to_string();
    assert!(refused.contains("another process is playing this run"), "{refused}");
    assert_eq!(RunDirectory::is_claimed(run.path()), Some(true));
    drop(clone);
    assert_eq!(RunDirectory::is_claimed(run.path()), Some(false));
    assert!(run.claim().is_ok());
}

#[cfg(unix)]
#[test]
fn a_run_directory_that_is_gone_or_another_is_noticed() {
    let (root, run) = created();
    let claim = run.claim().unwrap();
    assert!(claim.is_in_place());

    std::fs::rename(run.path(), root.path().join("elsewhere")).unwrap();
    assert!(!claim.is_in_place());
    create(root.path());
    assert!(!claim.is_in_place(), "another of the same name");
}

#[test]
fn a_run_s_copies_of_its_scenario_keep_the_folder_of_the_original() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let run = create(&root);
    let copies = ["scenario.ron", "resolved.ron"].map(|name| run.path().join(name));
    let folders = || copies.each_ref().map(|copy| scenario_folder(copy).unwrap().unwrap());
    assert_eq!(folders(), [run.path(), run.path()], "nothing is known of another");

    let manifest = r#"{"scenario_folder": "/experiments"}"#;
    std::fs::write(run.path().join("manifest.json"), manifest).unwrap();

    assert_eq!(folders(), ["/experiments", "/experiments"].map(PathBuf::from));
    let own = scenario_folder(&run.path().join("other.ron")).unwrap();
    assert_eq!(own.as_deref(), Some(run.path()));
}

#[test]
fn the_root_is_the_flag_then_the_variable_then_runs() {
    let flag = Path::new("flag");

    assert_eq!(root_from(Some(flag), Some("variable".into())), flag);
    assert_eq!(root_from(None, Some("variable".into())), Path::new("variable"));
    assert_eq!(root_from(None, None), Path::new("runs"));
}

#[test]
fn names_without_letters_still_make_an_id() {
    assert_eq!(slug("…"), "run");
    assert_eq!(slug("A/B  test_1"), "a-b-test-1");
}
