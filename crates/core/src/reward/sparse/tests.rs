use crate::reward::fixtures::*;
use crate::reward::*;
use crate::scenario::*;

#[test]
fn sparse_pays_committed_accuracy_less_committed_parameters_at_the_end() {
    let config = RewardConfig::Contribution(ContributionMode::Sparse(SparseReward::default()));
    let last = |committed: f64, params| {
        let committed_seed = committed_seed().params(params);
        let step = Step::new(150).after([committed_seed]).committed(committed);
        first(&config, step.last(EpisodeStatus::Truncated)).total()
    };
    assert_close(last(75.0, 250_000), 0.70);
    assert_close(last(0.0, 50_000_000), -1.0);
    assert_close(first(&config, Step::new(149).committed(75.0)).total(), 0.0);

    let mut unmeasured = Step::new(150).last(EpisodeStatus::Truncated).build();
    unmeasured.committed_accuracy = None;
    let error = compute(&config, &unmeasured, &mut RewardState::default()).unwrap_err();
    let missing = "the accuracy with committed seeds alone";
    assert_eq!(error, RewardError::MissingMeasurement(missing));
}
