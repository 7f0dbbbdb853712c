use super::*;
use crate::prior_art::rewards::fixtures::*;
use crate::reward::EpisodeStatus;

fn escrow() -> Arc<dyn RewardMode> {
    mode(EscrowReward {
        shaped: ShapedReward {
            disable_anti_gaming: true,
            ..generous()
        },
    })
}

/// A step in which the seed is worth `points`, far beyond the env's start.
fn worth(step: u32, points: f64) -> Step {
    let held = held(6, points);
    Step::new(step)
        .accuracy(90.0)
        .delta(points.abs())
        .slot(held.clone(), held)
}

/// The escrow payments of targets, one a step, the last step being the episode's.
fn payments(config: &Arc<dyn RewardMode>, targets: &[f64], ends: bool) -> Vec<f64> {
    let mut state = RewardState::default();
    let last = targets.len() as u32;
    (1..)
        .zip(targets)
        .map(|(step, &target)| {
            let inputs = match (step == last, ends) {
                (true, true) => worth(step, target).last(EpisodeStatus::Terminated),
                (true, false) => worth(step, target).act(LifecycleOp::Commit, 0),
                _ => worth(step, target),
            };
            pay(config, &inputs.build(), &mut state).get(Term::EscrowPayment)
        })
        .collect()
}

fn discounted(payments: &[f64]) -> f64 {
    payments.iter().rev().fold(0.0, |later, paid| paid + GAMMA * later)
}

#[test]
fn a_credit_that_is_not_kept_is_worth_nothing() {
    let paid = payments(&escrow(), &[1.0, 3.0, 6.0, 6.0, 2.0, 2.0], true);
    for (paid, expected) in paid.iter().zip([0.995, 1.985, 1.975, 0.97, -2.02, -4.0]) {
        assert_close(*paid, expected);
    }
    assert!(discounted(&paid).abs() < 1e-12);
}

#[test]
fn a_commit_keeps_the_credit() {
    let paid = payments(&escrow(), &[1.0, 3.0, 6.0, 6.0], false);
    for (paid, expected) in paid.iter().zip([0.995, 1.985, 1.975, 1.0]) {
        assert_close(*paid, expected);
    }
    assert_close(discounted(&paid), GAMMA.powi(3) * 6.0);
}

/// With a credit of 1.25.
fn credited() -> RewardState {
    let mut state = RewardState::default();
    pay(&escrow(), &worth(1, 1.25).build(), &mut state);
    state
}

#[test]
fn harm_empties_the_account_and_is_charged() {
    let harmful = worth(2, -0.25).build();
    let paid = pay(&escrow(), &harmful, &mut credited());
    assert_close(paid.get(Term::EscrowHarm), -0.25);
    assert_close(paid.get(Term::EscrowPayment), -1.25);
}

#[test]
fn any_end_of_a_seed_but_a_commit_empties_its_account() {
    let gone = |op| {
        let step = Step::new(2).accuracy(90.0).delta(1.25);
        let step = step.slot(held(6, 1.25), seed(SeedStage::Pruned, 1)).act(op, 0);
        pay(&escrow(), &step.build(), &mut credited()).get(Term::EscrowPayment)
    };
    assert_close(gone(LifecycleOp::Prune), -1.25);
    assert_close(gone(LifecycleOp::Wait), -1.25);
}

#[test]
fn an_unmeasured_seed_keeps_its_credit() {
    let unmeasured = seed(SeedStage::Holding, 6).alpha(1.0);
    let step = Step::new(2).accuracy(90.0).slot(unmeasured.clone(), unmeasured).build();
    let paid = pay(&escrow(), &step, &mut credited()).get(Term::EscrowPayment);
    assert_close(paid, (GAMMA - 1.0) * 1.25);
}

#[test]
fn a_spike_of_the_accuracy_earns_nothing() {
    let mut state = RewardState::default();
    for (step, accuracy) in [(1, 50.0), (2, 50.0)] {
        pay(&escrow(), &worth(step, 6.0).accuracy(accuracy).build(), &mut state);
    }
    let spike = pay(&escrow(), &worth(3, 6.0).build(), &mut state);
    assert_close(spike.get(Term::EscrowPayment), 0.0);
}

#[test]
fn what_is_on_account_can_be_asked_for_until_it_is_kept() {
    let mut state = RewardState::default();
    let config = escrow();
    pay(&config, &worth(1, 2.0).build(), &mut state);
    assert_close(state.account(0), 2.0);
    assert_eq!(state.account(1), 0.0, "no seed, no account");

    pay(&config, &worth(2, 3.0).act(LifecycleOp::Commit, 0).build(), &mut state);
    assert_eq!(state.account(0), 0.0, "kept is paid");
}

#[test]
fn another_seed_takes_over_nothing() {
    let mut state = credited();
    let unmeasured = seed(SeedStage::Holding, 6).alpha(1.0);
    let mut inputs = Step::new(2).accuracy(90.0).slot(unmeasured.clone(), unmeasured).build();
    let slot = &mut inputs.slots[0];
    for seed in [&mut slot.before, &mut slot.after].into_iter().flatten() {
        seed.seed_id = "e0.r0c0.1".into();
    }

    let paid = pay(&escrow(), &inputs, &mut state);

    assert_eq!(paid.get(Term::EscrowPayment), 0.0);
    assert_eq!(state.account(0), 0.0);
}
