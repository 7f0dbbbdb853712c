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

#[test]
fn records_of_earlier_versions_are_read_and_names_of_plugins_are_left_alone() {
    #[derive(Debug, serde::Deserialize)]
    struct Present {
        age_steps: u32,
    }
    #[derive(Debug, serde::Deserialize)]
    struct OfPlugin {
        age_epochs: u32,
    }

    let text = "(age_epochs: 3)";
    assert_eq!(read_ron::<Present>(text).unwrap().age_steps, 3);
    assert_eq!(read_ron::<OfPlugin>(text).unwrap().age_epochs, 3);
    let error = read_ron::<Present>("(age: 3)").unwrap_err().to_string();
    assert!(error.contains("age_steps"), "{error}");
}
