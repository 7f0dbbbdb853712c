use super::*;
use crate::prior_art::rewards::fixtures::*;
use crate::reward::EpisodeStatus;

/// The bonus before it is split.
#[test]
fn basic_pays_commits_and_the_gain_of_the_episode() {
    let config = mode(BasicReward);
    let bonus = |n, points, accuracy, delta| {
        let step = Step::new(50).accuracy(accuracy).delta(delta);
        let step = step.slot(held(n, points), committed_seed());
        first(&config, step.act(LifecycleOp::Commit, 0)).get(Term::CommitBonus)
    };
    assert_close(bonus(5, 4.0, 60.0, 4.0), 2.3);
    assert_close(bonus(1, 4.0, 60.0, 4.0), 0.46);
    assert_close(bonus(5, 15.0, 60.0, -3.0), -0.5);
    assert_close(bonus(5, 0.5, 60.0, 0.5), -0.2);
    // A seed whose only worth is to offset the harm of another has gained the env nothing.
    assert_close(bonus(5, 8.0, 48.0, 8.0), -0.2);

    let mut state = RewardState::default();
    pay(&config, &Step::new(1).accuracy(20.0).build(), &mut state);
    let last = Step::new(150).accuracy(60.0).last(EpisodeStatus::Truncated);
    assert_terms(&pay(&config, &last.build(), &mut state), &[(Term::TerminalGain, 2.0)]);
}

fn basic_plus() -> Arc<dyn RewardMode> {
    mode(BasicPlusReward)
}

/// Commits a seed worth 4 points, and returns the pay of that step and the memory of it.
fn commit_at(step: u32) -> (f64, RewardState) {
    let mut state = RewardState::default();
    let commit = Step::new(step).accuracy(60.0).delta(4.0).act(LifecycleOp::Commit, 0);
    let commit = commit.slot(held(5, 4.0), committed_seed()).build();
    let paid = pay(&basic_plus(), &commit, &mut state).get(Term::CommitBonus);
    (paid, state)
}

fn drip(step: u32, points: f64, state: &mut RewardState) -> f64 {
    let later = Step::new(step).slot(committed_seed().worth(points), committed_seed());
    pay(&basic_plus(), &later.build(), state).get(Term::Drip)
}

#[test]
fn basic_plus_pays_most_of_the_bonus_while_the_seed_contributes() {
    let (at_once, mut state) = commit_at(50);
    assert_close(at_once, 0.69);

    let total: f64 = (51..=150).map(|step| drip(step, 4.0, &mut state)).sum();
    assert_close(total, 1.61);

    let (_, mut state) = commit_at(50);
    assert_close(drip(51, -4.0, &mut state), -0.00805);
    assert_close(drip(52, 40.0, &mut state), 0.0161);
}

#[test]
fn instalments_are_bounded_at_the_end_of_an_episode() {
    let (_, mut state) = commit_at(148);
    assert_close(drip(149, 4.0, &mut state), 0.1);
    assert_close(drip(150, -4.0, &mut state), -0.05);
}

#[test]
fn an_unmeasured_committed_seed_is_an_error() {
    let (_, mut state) = commit_at(50);
    let unmeasured = Step::new(51).slot(committed_seed(), committed_seed()).build();

    let missing = RewardError::MissingMeasurement("the contribution of a committed seed");
    assert_eq!(compute(&basic_plus(), &unmeasured, &mut state), Err(missing));
}
