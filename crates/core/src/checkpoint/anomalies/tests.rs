use super::*;

#[test]
fn folders_are_numbered_until_there_are_twenty() {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Vec::new();

    while let Some(name) = free_name(folder.path()) {
        std::fs::create_dir(&name).unwrap();
        numbers.push(name.file_name().unwrap().to_string_lossy().into_owned());
    }

    let expected: Vec<String> = (1..=20).map(|number| number.to_string()).collect();
    assert_eq!(numbers, expected);
}
