use super::*;
use crate::growth::SeedStage;
use crate::reward::fixtures::{Step, seed};

fn inputs() -> RewardInputs {
    let seed = seed(SeedStage::Training, 2);
    Step::new(3).slot(seed.clone(), seed).build()
}

#[test]
fn terms_of_an_application_are_added_up() {
    let mut terms = RewardTerms::default();
    terms.register("one", |_| 1.0).unwrap();
    terms.register("seeds", |step| step.slots.len() as f64).unwrap();
    let mut out = RewardBreakdown::default();

    terms.pay(&inputs(), &mut out).unwrap();

    assert_eq!(out.get(Term::Extension), 2.0);
    assert_eq!(out.total(), 2.0);
}

#[test]
fn a_term_that_is_no_number_or_whose_name_is_taken_is_named() {
    let mut terms = RewardTerms::default();
    terms.register("broken", |_| f64::NAN).unwrap();

    let twice = terms.register("broken", |_| 0.0).unwrap_err();
    let broken = terms.pay(&inputs(), &mut RewardBreakdown::default()).unwrap_err();

    assert_eq!(twice.to_string(), "a reward term `broken` is registered already");
    assert_eq!(broken.to_string(), "the reward term `broken` is NaN");
}
