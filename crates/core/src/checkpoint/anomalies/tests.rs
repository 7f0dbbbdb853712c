use super::*;

#[test]
fn an_answer_is_by_severity_and_information_is_noted() {
    use Severity::{Critical, Debug, Error, Info, Warning};
    let (note, checkpoint, stop) = (AnomalyAnswer::Note, AnomalyAnswer::Checkpoint, AnomalyAnswer::Stop);
    let answers = OnAnomaly {
        warning: note,
        error: checkpoint,
        critical: stop,
    };

    let answer = [Debug, Info, Warning, Error, Critical].map(|severity| answer_to(severity, answers));
    assert_eq!(answer, [note, note, note, checkpoint, stop]);
    assert!(answers.asks_for_checkpoints() && !OnAnomaly::default().asks_for_checkpoints());
}

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
