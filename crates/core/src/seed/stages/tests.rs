use super::*;

#[test]
fn exactly_the_transitions_of_the_table_are_legal() {
    use SeedStage::*;
    let table: [(SeedStage, &[SeedStage]); SeedStage::ALL.len()] = [
        (Unknown, &[Germinated]),
        (Dormant, &[Germinated]),
        (Germinated, &[Training, Pruned]),
        (Training, &[Blending, Pruned]),
        (Blending, &[Holding, Pruned]),
        (Holding, &[Blending, Committed, Pruned]),
        (Committed, &[]),
        (Pruned, &[Embargoed]),
        (Embargoed, &[Resetting]),
        (Resetting, &[Dormant]),
    ];
    for (from, followers) in table {
        let found = SeedStage::ALL.into_iter().filter(|&to| may_follow(from, to));
        assert_eq!(found.collect::<Vec<_>>(), followers, "{from}");
    }
}

#[test]
fn advancing_never_commits_or_prunes() {
    for stage in SeedStage::ALL {
        if let Some((_, to)) = next_stage(stage) {
            assert!(may_follow(stage, to) && to.is_live());
        }
    }
    assert_eq!(next_stage(SeedStage::Holding), None);
}

#[test]
fn seeds_train_from_incubation_on_unless_they_fade_or_are_frozen_for_ever() {
    use AlphaMode::{Down, Hold, Up};
    use SeedStage::*;
    for stage in [Unknown, Dormant, Germinated, Pruned, Embargoed, Resetting] {
        assert!(!trains(stage, Hold, OnCommit::Keep));
    }
    assert!(trains(Training, Hold, OnCommit::Keep));
    assert!(trains(Blending, Up, OnCommit::Keep));
    assert!(!trains(Blending, Down, OnCommit::Keep));
    assert!(trains(Holding, Hold, OnCommit::Freeze));
    assert!(trains(Committed, Hold, OnCommit::ResetMomentum));
    assert!(!trains(Committed, Hold, OnCommit::Freeze));
}

#[test]
fn an_optimizer_needs_a_stage_that_has_begun_to_train() {
    assert!(!has_optimizer(SeedStage::Germinated));
    assert!(has_optimizer(SeedStage::Training));
    assert!(has_optimizer(SeedStage::Committed));
    assert!(!has_optimizer(SeedStage::Pruned));
}
