use super::*;

#[test]
fn names_of_folders_are_read_back_and_others_are_none() {
    for standing in [Standing::before(12), Standing { round: 3, step: 40 }] {
        assert_eq!(Standing::of_name(&standing.name()), Some(standing));
    }
    for name in [
        "round-",
        "round-000003-step-0000",
        "round-3-step-",
        "best",
        ".round-000003.new",
    ] {
        assert_eq!(Standing::of_name(name), None, "{name}");
    }
}

#[test]
fn checkpoints_are_ordered_as_runs_are_played() {
    let inside = |round, step| Standing { round, step };
    let played = [
        Standing::before(2),
        inside(2, 9),
        inside(2, 10),
        Standing::before(3),
        Standing::before(10),
    ];

    assert!(played.is_sorted());
    assert_eq!(played[1].to_string(), "after 9 steps of round 3");
    assert_eq!(played[3].to_string(), "after 3 rounds");
}
