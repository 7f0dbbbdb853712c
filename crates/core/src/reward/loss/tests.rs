use crate::growth::SeedStage;
use crate::reward::fixtures::*;
use crate::reward::*;

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
fn a_rising_loss_costs_what_a_falling_one_pays() {
    let mut state = RewardState::default();
    pay(&loss(), &Step::new(1).loss(1.0).build(), &mut state);
    let paid = pay(&loss(), &Step::new(2).loss(1.2).build(), &mut state);
    assert_terms(&paid, &[(Term::LossDelta, -10.0)]);
}

/// A spike is charged and refunded in full, however far it is beyond what one step may pay.
#[test]
fn a_spike_of_the_loss_pays_nothing() {
    let mut state = RewardState::default();
    let losses = [1.0, 4.0, 1.0, 1.0, 1.0, 1.0];
    let paid = (1..).zip(losses).map(|(step, loss_now)| {
        let step = Step::new(step).loss(loss_now).build();
        pay(&loss(), &step, &mut state).get(Term::LossDelta)
    });
    assert_close(paid.sum(), 0.0);
}

#[test]
fn what_uncommitted_seeds_gave_is_taken_back_at_the_end() {
    let mut state = RewardState::default();
    pay(&loss(), &Step::new(1).loss(1.5).build(), &mut state);
    let unmeasured = Step::new(2).loss(1.2).build();
    assert_close(pay(&loss(), &unmeasured, &mut state).get(Term::LossDelta), 15.0);

    let mut last = Step::new(3).loss(1.2).last(EpisodeStatus::Truncated).build();
    last.committed_loss = Some(2.5);
    let paid = pay(&loss(), &last, &mut state);

    assert_close(paid.get(Term::LossDelta), -25.0);
    assert_close(paid.get(Term::LossSettlement), -40.0);
}

#[test]
fn young_seeds_pay_no_rent_in_the_loss_family() {
    let rent = |age| first(&loss(), Step::new(9).after([seed(SeedStage::Training, 1).age(age)])).get(Term::ComputeRent);
    assert_eq!(rent(2), 0.0);
    assert_close(rent(3), -0.05 * 1.1_f64.ln());
}
