use super::*;

/// A folder with runs of these names.
fn runs(names: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for name in names {
        std::fs::create_dir(root.path().join(name)).unwrap();
        std::fs::write(root.path().join(name).join("resolved.ron"), "()").unwrap();
    }
    root
}

fn find(run: &str, root: &Path) -> Result<String, FindRunError> {
    find_run(Path::new(run), Some(root)).map(|place| name_of(&place))
}

fn why(run: &str, root: &Path) -> String {
    let error = find(run, root).unwrap_err().to_string();
    error.replace(&root.display().to_string(), "RUNS")
}

const NAMES: [&str; 3] = [
    "20260101-100000-quickstart-ab12",
    "20260102-100000-digits-rescue-cd34",
    "20260102-110000-quickstart-ab12",
];

#[test]
fn a_run_is_found_by_folder_by_name_by_its_beginning_and_as_the_latest() {
    let root = runs(&NAMES);
    std::fs::write(root.path().join("latest"), format!("{}\n", NAMES[0])).unwrap();
    let folder = root.path().join(NAMES[1]);

    let found = |run: &str| find(run, root.path()).unwrap();

    assert_eq!(found(&folder.display().to_string()), NAMES[1]);
    assert_eq!(found(NAMES[1]), NAMES[1]);
    assert_eq!(found("20260101"), NAMES[0]);
    assert_eq!(found("20260102-10…"), NAMES[1]);
    assert_eq!(found("latest"), NAMES[0]);
    assert_eq!(found(&root.path().join("latest").display().to_string()), NAMES[0]);
    let beginning = find_run(&root.path().join("20260102-11"), None).unwrap();
    assert_eq!(beginning, root.path().join(NAMES[2]));
}

/// Older engines noted the newest run so.
#[cfg(unix)]
#[test]
fn a_link_named_latest_is_followed() {
    let root = runs(&NAMES);
    std::os::unix::fs::symlink(NAMES[1], root.path().join("latest")).unwrap();

    let found = find_run(Path::new("latest"), Some(root.path())).unwrap();

    let linked = root.path().join(NAMES[1]);
    assert_eq!(found.canonicalize().unwrap(), linked.canonicalize().unwrap());
    assert_eq!(runs_in(root.path()).len(), 3);
}

#[test]
fn a_run_that_is_not_there_is_refused_with_those_that_look_like_it() {
    let root = runs(&NAMES);

    let nothing_like_it = "there is no run nope in RUNS; `simic-engine runs --out RUNS` lists them all";
    assert_eq!(why("nope", root.path()), nothing_like_it);
    assert!(why("Quickstart", root.path()).contains(&format!("did you mean {} or {}?", NAMES[2], NAMES[0])));
    assert!(why("digits-resque-cd34", root.path()).contains(&format!("did you mean {}?", NAMES[1])));
    let gone = root.path().join("gone");
    assert!(why("nope", &gone).contains("the folder RUNS does not exist"));
    std::fs::write(root.path().join("latest"), "20250101-000000-old-0000").unwrap();
    assert!(why("latest", root.path()).starts_with("the newest run in RUNS was 20250101-000000-old-0000"));
}

#[test]
fn a_beginning_of_several_runs_lists_them() {
    let root = runs(&NAMES);

    let runs = format!("{}, {}", NAMES[2], NAMES[1]);
    let expected = format!("20260102 may be any of 2 runs in RUNS: {runs}; write more of its name");
    assert_eq!(why("20260102", root.path()), expected);
}
