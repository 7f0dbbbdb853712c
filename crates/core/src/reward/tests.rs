//! Inputs that no mode accepts, and the modes' descriptions of themselves.

use super::fixtures::*;
use super::*;
use crate::scenario::*;

#[test]
fn impossible_inputs_are_named() {
    let (default, step) = (RewardConfig::default(), || Step::new(1));
    for (reward, step, why) in [
        (&default, step().accuracy(f64::NAN), "the accuracy is NaN"),
        (&default, step().accuracy(140.0), "the accuracy 140 isn't a percentage"),
        (&default, step().delta(f64::INFINITY), "the joint improvement is inf"),
        (
            &default,
            step().before([held(1, f64::NAN)]),
            "a seed's contribution is NaN",
        ),
        (&loss(), step().loss(f64::NAN), "the validation loss is NaN"),
    ] {
        let error = compute(reward, &step.build(), &mut RewardState::default()).unwrap_err();
        assert_eq!(error.to_string(), why);
    }
}

#[test]
fn a_mode_says_how_often_it_must_be_measured_and_what_it_charges() {
    let profile = |config: RewardConfig| RewardModes::default().profile(&config);
    let committed = profile(RewardConfig::default());

    assert_eq!(committed.measurement, MeasurementNeed::EveryStep);
    assert_eq!(committed.price, Some(CommittedReward::default().rent));
    assert_eq!(profile(loss()).measurement, MeasurementNeed::AtTheEnd);
}

#[test]
fn only_contributions_of_the_same_step_are_seen() {
    let mut record = crate::seed::fixtures::fresh();
    for (age, seen) in [(0, Some(2.0)), (1, None)] {
        (record.contribution.value, record.contribution.age) = (Some(2.0), Some(age));
        assert_eq!(SeedView::before_action(&record).contribution, seen);
    }
}
