use super::*;

#[test]
fn what_differs_between_two_scenarios_is_named_by_its_path() {
    let before = Scenario::default();
    let mut now = before.clone();
    assert_eq!(changed_fields(&before, &now), []);

    now.attribution.pairs_max = 3;

    let changed = changed_fields(&before, &now);
    assert_eq!(changed, [("attribution.pairs_max".into(), 8.into(), 3.into())]);
}

#[test]
fn a_section_that_may_change_covers_its_fields_and_no_others() {
    assert!(covers("learner.lr", "learner.lr"));
    assert!(covers("learner", "learner.lr"));
    assert!(!covers("learner.lr", "learner.lr_schedule"));
    assert!(!covers("learner.lr", "learner"));
}
