use super::*;

#[test]
fn latest_leads_to_the_folder_that_it_names_and_to_no_other_place() {
    let folder = tempfile::tempdir().unwrap();
    let latest = folder.path().join("latest");
    assert_eq!(follow_latest(&latest), latest);

    for (text, leads_to) in [
        ("run-1\n", "run-1"),
        ("../else\n", "latest"),
        ("/", "latest"),
        ("", "latest"),
    ] {
        std::fs::write(&latest, text).unwrap();
        assert_eq!(follow_latest(&latest), folder.path().join(leads_to), "{text:?}");
    }
}

#[test]
fn a_text_that_is_nested_too_deeply_is_refused_in_words_for_people() {
    let error = read_ron::<ron::Value>(&"[".repeat(10_000)).unwrap_err().to_string();

    assert!(error.ends_with(": nested too deeply"), "{error}");
}
