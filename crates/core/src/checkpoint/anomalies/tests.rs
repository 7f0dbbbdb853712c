use super::*;

#[test]
fn an_answer_is_by_severity_and_information_is_noted() {
    let answers = OnAnomaly {
        warning: AnomalyAnswer::Note,
        error: AnomalyAnswer::Checkpoint,
        critical: AnomalyAnswer::Stop,
    };
    let severities = [
        Severity::Debug,
        Severity::Info,
        Severity::Warning,
        Severity::Error,
        Severity::Critical,
    ];

    let answer = severities.map(|severity| answer_to(severity, answers));

    let (note, checkpoint, stop) = (AnomalyAnswer::Note, AnomalyAnswer::Checkpoint, AnomalyAnswer::Stop);
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

    assert_eq!(
        (numbers.len(), numbers[0].as_str(), numbers[19].as_str()),
        (20, "1", "20")
    );
}
