use super::*;

#[test]
fn a_mode_that_is_paid_at_the_end_needs_nothing_before() {
    let at_the_end = RewardProfile::needing(MeasurementNeed::AtTheEnd);
    let required = |is_final| [0, 1, 2, 6].map(|players| at_the_end.required_masks(is_final).most(players));

    assert_eq!(required(false), [1; 4]);
    // All on, none committed, each of the held ones committed.
    assert_eq!(required(true), [1, 2, 4, 8]);
}

#[test]
fn contributions_need_each_seed_off_and_what_a_commit_would_leave() {
    let required = RewardProfile::needing(MeasurementNeed::EveryStep).required_masks(false);

    assert_eq!([0, 1, 2, 3, 6].map(|players| required.most(players)), [1, 2, 4, 8, 14]);
}
