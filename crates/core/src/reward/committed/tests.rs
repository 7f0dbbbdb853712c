use proptest::prelude::*;

use crate::growth::SeedStage;
use crate::reward::fixtures::*;
use crate::reward::*;
use crate::scenario::*;

fn committed() -> RewardConfig {
    RewardConfig::default()
}

/// 10 000 parameters on a host of 100 000, for a whole episode: a tenth of a percentage point.
#[test]
fn a_step_pays_the_committed_accuracy_gained_less_rent() {
    let mut state = RewardState::default();
    let held = || seed(SeedStage::Holding, 3).alpha(1.0);
    let before = Step::new(40).committed(50.0).kept(58.0).slot(held(), held());
    pay(&committed(), &before.build(), &mut state);

    let commit = Step::new(41).committed(58.0).kept(58.0).slot(held(), committed_seed());
    let paid = pay(&committed(), &commit.build(), &mut state);

    let rent = -0.1 * 0.1 / 150.0;
    let expected = [
        (Term::CommittedChange, 0.8),
        (Term::Loan, -0.8),
        (Term::LinearRent, rent),
    ];
    assert_terms(&paid, &expected);
}

/// The restored network's accuracy was paid for before, or is not its doing.
#[test]
fn a_rollback_pays_nothing() {
    let mut state = RewardState::default();
    let lent = Step::new(1).committed(50.0).kept(60.0);
    assert!(pay(&committed(), &lent.build(), &mut state).get(Term::Loan) > 0.0);

    state.roll_back();

    let later = Step::new(3).committed(30.0).kept(30.0).build();
    assert_terms(&pay(&committed(), &later, &mut state), &[]);
}

#[test]
fn an_unmeasured_step_is_an_error() {
    let error = compute(&committed(), &Step::new(1).build(), &mut RewardState::default()).unwrap_err();
    let missing = "the accuracy with committed seeds alone";
    assert_eq!(error, RewardError::MissingMeasurement(missing));
}

proptest! {
    /// The plain sum of an episode is the committed accuracy gained less rent; the loan's discounted sum is nothing.
    #[test]
    fn an_episode_is_paid_for_what_it_committed(
        measured in prop::collection::vec((0.0f64..=100.0, 0.0f64..=100.0, 0.0f64..=1.0), 2..60),
    ) {
        let mut state = RewardState::default();
        let (mut paid, mut rent, mut loan) = (0.0, 0.0, 0.0);
        let steps = measured.len() as u32;
        for (step, (committed_now, kept, alpha)) in (1..).zip(&measured) {
            let seed = seed(SeedStage::Blending, 2).alpha(*alpha);
            let step = Step::new(step).committed(*committed_now).kept(*kept).slot(seed.clone(), seed);
            let mut inputs = step.build();
            if inputs.step == steps {
                (inputs.is_final, inputs.status) = (true, EpisodeStatus::Terminated);
            }
            let breakdown = pay(&committed(), &inputs, &mut state);
            paid += breakdown.total() - breakdown.get(Term::Loan);
            rent += 0.1 * alpha * 10_000.0 / 100_000.0 / 150.0;
            loan += GAMMA.powi(inputs.step as i32 - 1) * breakdown.get(Term::Loan);
        }
        let gained = measured[measured.len() - 1].0 - measured[0].0;
        prop_assert!((paid - (0.1 * gained - rent)).abs() < 1e-9);
        prop_assert!(loan.abs() < 1e-9, "{loan}");
    }
}
