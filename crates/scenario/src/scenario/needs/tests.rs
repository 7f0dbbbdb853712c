use super::*;
use crate::scenario::{BasicReward, LossReward, ShapedReward};

fn contribution(mode: ContributionMode) -> RewardConfig {
    RewardConfig::Contribution(mode)
}

#[test]
fn what_a_mode_needs_is_as_old_as_it_allows() {
    let shaped = contribution(ContributionMode::Shaped(Box::new(ShapedReward {
        max_staleness: 3,
        ..ShapedReward::default()
    })));
    let basic = contribution(ContributionMode::Basic(BasicReward::default()));
    let loss = RewardConfig::Loss(LossReward::default());

    assert_eq!(shaped.measurement_need(), MeasurementNeed::Fresh { max_staleness: 3 });
    assert_eq!(basic.measurement_need(), MeasurementNeed::AtCommit { max_staleness: 0 });
    assert_eq!(loss.measurement_need(), MeasurementNeed::AtTheEnd);
    assert_eq!(RewardConfig::default().measurement_need(), MeasurementNeed::EveryStep);
}

#[test]
fn a_mode_that_is_paid_at_the_end_needs_nothing_before() {
    let loss = RewardConfig::Loss(LossReward::default());

    assert_eq!(
        [0, 1, 2, 6].map(|players| loss.required_masks(false).most(players)),
        [1; 4]
    );
    // All on, none committed, each of the held ones committed.
    assert_eq!(
        [0, 1, 2, 6].map(|players| loss.required_masks(true).most(players)),
        [1, 2, 4, 8]
    );
}

#[test]
fn contributions_need_each_seed_off_and_what_a_commit_would_leave() {
    let required = RewardConfig::default().required_masks(false);

    assert_eq!([0, 1, 2, 3, 6].map(|players| required.most(players)), [1, 2, 4, 8, 14]);
}
