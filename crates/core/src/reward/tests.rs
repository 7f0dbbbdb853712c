//! What no mode accepts, and what the modes say of themselves.

use super::fixtures::*;
use super::*;
use crate::scenario::*;

#[test]
fn what_is_no_number_is_named() {
    let refusal = |step: Step| {
        compute(&RewardConfig::default(), &step.build(), &mut RewardState::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(refusal(Step::new(1).accuracy(f64::NAN)), "the accuracy is NaN");
    assert_eq!(
        refusal(Step::new(1).accuracy(140.0)),
        "the accuracy 140 is no percentage"
    );
    assert_eq!(
        refusal(Step::new(1).delta(f64::INFINITY)),
        "the joint improvement is inf"
    );
    let broken = Step::new(1).before([held(1, f64::NAN)]);
    assert_eq!(refusal(broken), "a seed's contribution is NaN");

    let error = compute(
        &loss(),
        &Step::new(1).loss(f64::NAN).build(),
        &mut RewardState::default(),
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "the validation loss is NaN");
}

#[test]
fn a_mode_says_how_often_it_must_be_measured_and_what_it_charges() {
    let profile = |config: RewardConfig| RewardModes::default().profile(&config);
    let committed = profile(RewardConfig::default());

    assert_eq!(committed.measurement, MeasurementNeed::EveryStep);
    assert_eq!(committed.price, Some(CommittedReward::default().rent));
    assert_eq!(profile(loss()).measurement, MeasurementNeed::AtTheEnd);
}
