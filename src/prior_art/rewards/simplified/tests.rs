use super::*;
use crate::prior_art::rewards::fixtures::*;
use crate::reward::EpisodeStatus;

#[test]
fn simplified_pays_accuracy_and_contributing_commits_at_the_end() {
    let config = mode(SimplifiedReward);
    let mut state = RewardState::default();
    for step in [40, 42] {
        let commit = Step::new(step).slot(held(5, 1.0), None).act(LifecycleOp::Commit, 0);
        let paid = pay(&config, &commit.build(), &mut state);
        assert_close(paid.get(Term::Intervention), -0.01);
    }
    let worthless = Step::new(44).slot(held(5, 0.9), None).act(LifecycleOp::Commit, 0);
    pay(&config, &worthless.build(), &mut state);

    let last = Step::new(150).accuracy(80.0).last(EpisodeStatus::Truncated);
    assert_close(pay(&config, &last.build(), &mut state).total(), 6.4);
}
