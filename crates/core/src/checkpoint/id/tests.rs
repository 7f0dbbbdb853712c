use super::*;

#[test]
fn names_of_folders_are_read_back_and_others_are_none() {
    for id in [CheckpointId::before(12), CheckpointId { round: 3, step: 40 }] {
        assert_eq!(CheckpointId::of_name(&id.name()), Some(id));
    }
    let unfinished = ["round-", "round-3-step-", ".round-000003.new"];
    for name in ["best", "round-000003-step-0000"].into_iter().chain(unfinished) {
        assert_eq!(CheckpointId::of_name(name), None, "{name}");
    }
}

#[test]
fn checkpoints_are_ordered_as_runs_are_played() {
    let inside = |round, step| CheckpointId { round, step };
    let played = [
        CheckpointId::before(2),
        inside(2, 9),
        inside(2, 10),
        CheckpointId::before(3),
        CheckpointId::before(10),
    ];

    assert!(played.is_sorted());
    assert_eq!(played[1].to_string(), "after 9 steps of round 3");
    assert_eq!(played[3].to_string(), "after 3 rounds");
}
