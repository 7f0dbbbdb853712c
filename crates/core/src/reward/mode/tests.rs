use super::*;
use crate::growth::SeedStage;
use crate::reward::fixtures::{Step, seed};

fn inputs() -> RewardInputs {
    let seed = seed(SeedStage::Training, 2);
    Step::new(3).slot(seed.clone(), seed).build()
}

#[test]
fn terms_of_an_application_are_added_up_and_one_of_nan_is_named() {
    let mut terms = RewardTerms::default();
    terms.register("one", "always 1", Arc::new(|_| 1.0));
    terms.register("seeds", "their number", Arc::new(|step| step.slots.len() as f64));
    let mut out = RewardBreakdown::default();
    terms.pay(&inputs(), &mut out).unwrap();
    assert_eq!((out.get(Term::Extension), out.total()), (2.0, 2.0));

    terms.register("broken", "no number", Arc::new(|_| f64::NAN));
    let broken = terms.pay(&inputs(), &mut out).unwrap_err();
    assert_eq!(broken.to_string(), "the reward term `broken` is NaN");
}
