//! Whole steps of the smaller modes.

use super::*;
use crate::growth::{LifecycleOp, SeedStage};
use crate::reward::fixtures::*;
use crate::reward::*;
use crate::scenario::*;

#[test]
fn sparse_pays_committed_accuracy_less_committed_parameters_at_the_end() {
    let config = RewardConfig::Contribution(ContributionMode::Sparse(SparseReward::default()));
    let last = |committed: f64, params| {
        let fossil = fossil().params(params);
        let step = Step::new(150).after([fossil]).committed(committed);
        first(&config, step.last(EpisodeStatus::Truncated)).total()
    };
    assert_close(last(75.0, 250_000), 0.70);
    assert_close(last(0.0, 50_000_000), -1.0);
    assert_close(first(&config, Step::new(149).committed(75.0)).total(), 0.0);

    let unmeasured = Step::new(150).last(EpisodeStatus::Truncated).build();
    let error = RewardFunction::resolve(&config, GAMMA)
        .compute(&unmeasured, &mut RewardState::default())
        .unwrap_err();
    assert_eq!(
        error,
        RewardError::MissingMeasurement("the committed accuracy of the last step")
    );
}

#[test]
fn simplified_pays_accuracy_and_contributing_commits_at_the_end() {
    let config = RewardConfig::Contribution(ContributionMode::Simplified(SimplifiedReward::default()));
    let mut state = RewardState::default();
    for step in [40, 42] {
        let commit = Step::new(step).slot(held(5, 1.0), None).act(LifecycleOp::Fossilize, 0);
        let paid = pay(&config, &commit.build(), &mut state);
        assert_close(paid.get(Term::Intervention), -0.01);
    }
    let worthless = Step::new(44).slot(held(5, 0.9), None).act(LifecycleOp::Fossilize, 0);
    pay(&config, &worthless.build(), &mut state);

    let last = Step::new(150).accuracy(80.0).last(EpisodeStatus::Truncated);
    assert_close(pay(&config, &last.build(), &mut state).total(), 6.4);
}

/// The bonus before it is split.
#[test]
fn basic_pays_commits_and_the_gain_of_the_episode() {
    let config = RewardConfig::Contribution(ContributionMode::Basic(BasicReward::default()));
    let bonus = |n, c, delta| {
        let step = Step::new(50).delta(delta).slot(held(n, c), fossil());
        first(&config, step.act(LifecycleOp::Fossilize, 0)).get(Term::FossilizeBonus)
    };
    assert_close(bonus(5, 4.0, 4.0), 2.3);
    assert_close(bonus(1, 4.0, 4.0), 0.46);
    assert_close(bonus(5, 15.0, -3.0), -0.5);
    assert_close(bonus(5, 0.5, 0.5), -0.2);

    let mut state = RewardState::default();
    pay(&config, &Step::new(1).accuracy(20.0).build(), &mut state);
    let last = Step::new(150).accuracy(60.0).last(EpisodeStatus::Truncated);
    assert_terms(&pay(&config, &last.build(), &mut state), &[(Term::TerminalGain, 2.0)]);
}

/// Withering seeds have no potential, but pay rent.
#[test]
fn the_loss_family_pays_for_a_falling_loss() {
    let withering = || seed(SeedStage::Blending, 3).params(20_000).withering();
    let mut state = RewardState::default();
    let one = Step::new(149).loss(1.55).slot(withering(), withering());
    assert_eq!(pay(&loss(), &one.build(), &mut state).get(Term::LossDelta), 0.0);

    let two = Step::new(150).loss(1.5).slot(withering(), withering());
    let paid = pay(&loss(), &two.last(EpisodeStatus::Truncated).build(), &mut state);
    assert_close(paid.total(), 2.890883922160302);
}

#[test]
fn a_rising_loss_costs_half_as_much() {
    let mut state = RewardState::default();
    pay(&loss(), &Step::new(1).loss(1.0).build(), &mut state);
    let worse = pay(&loss(), &Step::new(2).loss(1.2).build(), &mut state);
    assert_terms(&worse, &[(Term::LossDelta, -5.0)]);
}

#[test]
fn young_seeds_pay_no_rent_in_the_loss_family() {
    let rent = |age| first(&loss(), Step::new(9).after([seed(SeedStage::Training, 1).age(age)])).get(Term::ComputeRent);
    assert_eq!(rent(2), 0.0);
    assert_close(rent(3), -0.05 * 1.1_f64.ln());
}
