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
    let step = Step::new(step).accuracy(90.0).delta(points.abs());
    step.slot(held(6, points), held(6, points))
}

/// Plays targets, one per step, the last with the end that `end` returns, and checks the pay. Returns its discounted sum.
fn discounted(targets: &[f64], end: impl Fn(Step) -> Step, expected: &[f64]) -> f64 {
    let mut state = RewardState::default();
    let (mut sum, last) = (0.0, targets.len() as u32);
    for ((step, &target), &expected) in (1..).zip(targets).zip(expected) {
        let inputs = worth(step, target);
        let inputs = if step == last { end(inputs) } else { inputs };
        let paid = pay(&escrow(), &inputs.build(), &mut state).get(Term::EscrowPayment);
        assert_close(paid, expected);
        sum += GAMMA.powi(step as i32 - 1) * paid;
    }
    sum
}

#[test]
fn a_credit_that_is_not_kept_is_worth_nothing() {
    let end = |step: Step| step.last(EpisodeStatus::Terminated);
    let targets = [1.0, 3.0, 6.0, 6.0, 2.0, 2.0];
    assert_close(
        discounted(&targets, end, &[0.995, 1.985, 1.975, 0.97, -2.02, -4.0]),
        0.0,
    );
}

#[test]
fn a_commit_keeps_the_credit() {
    let end = |step: Step| step.act(LifecycleOp::Commit, 0);
    let sum = discounted(&[1.0, 3.0, 6.0, 6.0], end, &[0.995, 1.985, 1.975, 1.0]);
    assert_close(sum, GAMMA.powi(3) * 6.0);
}

/// A state with a credit of 1.25.
fn credited() -> RewardState {
    let mut state = RewardState::default();
    pay(&escrow(), &worth(1, 1.25).build(), &mut state);
    state
}

#[test]
fn harm_empties_the_account_and_is_charged() {
    let paid = pay(&escrow(), &worth(2, -0.25).build(), &mut credited());
    assert_close(paid.get(Term::EscrowHarm), -0.25);
    assert_close(paid.get(Term::EscrowPayment), -1.25);
}

#[test]
fn any_end_of_a_seed_but_a_commit_empties_its_account() {
    for op in [LifecycleOp::Prune, LifecycleOp::Wait] {
        let step = Step::new(2).accuracy(90.0).delta(1.25).act(op, 0);
        let step = step.slot(held(6, 1.25), seed(SeedStage::Pruned, 1));
        let paid = pay(&escrow(), &step.build(), &mut credited());
        assert_close(paid.get(Term::EscrowPayment), -1.25);
    }
}

/// The next step, in which the seed is not measured.
fn unmeasured() -> RewardInputs {
    let seed = || seed(SeedStage::Holding, 6).alpha(1.0);
    Step::new(2).accuracy(90.0).slot(seed(), seed()).build()
}

#[test]
fn an_unmeasured_seed_keeps_its_credit() {
    let paid = pay(&escrow(), &unmeasured(), &mut credited());
    assert_close(paid.get(Term::EscrowPayment), (GAMMA - 1.0) * 1.25);
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
    let mut state = credited();
    assert_close(state.account(0), 1.25);
    assert_eq!(state.account(1), 0.0, "no seed, no account");

    pay(
        &escrow(),
        &worth(2, 3.0).act(LifecycleOp::Commit, 0).build(),
        &mut state,
    );
    assert_eq!(state.account(0), 0.0, "kept is paid");
}

#[test]
fn another_seed_takes_over_nothing() {
    let mut state = credited();
    let mut inputs = unmeasured();
    let slot = &mut inputs.slots[0];
    for seed in [&mut slot.before, &mut slot.after].into_iter().flatten() {
        seed.seed_id = "e0.r0c0.1".into();
    }

    let paid = pay(&escrow(), &inputs, &mut state);

    assert_eq!((paid.get(Term::EscrowPayment), state.account(0)), (0.0, 0.0));
}
