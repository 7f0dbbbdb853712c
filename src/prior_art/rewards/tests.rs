//! Properties that hold for all of these rewards: sums, required inputs, and that nothing but growth pays.

use proptest::prelude::*;

use super::fixtures::*;
use super::shaped::CommittedAttribution;
use super::*;
use crate::reward::audited::{check_strategies, failures};
use crate::reward::properties::{any_inputs, check_sum};
use crate::scenario::RewardConfig;
use crate::schema::Settings;

const NAMES: [&str; 6] = ["shaped", "escrow", "simplified", "basic", "basic_plus", "minimal"];

fn modes() -> RewardModes {
    let mut modes = RewardModes::default();
    register(&mut modes);
    modes
}

/// One of them with settings in RON.
fn config(name: &str, settings: &str) -> RewardConfig {
    RewardConfig::Custom {
        name: name.into(),
        settings: ron::from_str::<Settings>(settings).unwrap(),
    }
}

fn made(name: &str) -> Arc<dyn RewardMode> {
    modes().of(&config(name, "()")).unwrap()
}

proptest! {
    #[test]
    fn every_reward_is_the_finite_sum_of_its_terms(inputs in any_inputs(), mode in prop::sample::select(&NAMES[..])) {
        let breakdown = check_sum(&made(mode), &inputs)?;
        prop_assert!(breakdown.get(Term::Attribution).abs() <= 3.0 * 10.0);
        prop_assert!(breakdown.get(Term::RatioPenalty) <= 0.0);
    }
}

#[test]
fn each_mode_says_what_must_be_measured() {
    let needs = NAMES.map(|name| made(name).profile().measurement);

    let (fresh, at_commit) = (MeasurementNeed::Fresh, MeasurementNeed::AtCommit);
    assert_eq!(
        needs,
        [fresh, fresh, at_commit, at_commit, fresh, MeasurementNeed::AtTheEnd]
    );
}

#[test]
fn committed_seeds_are_measured_for_rewards_that_pay_them_as_measured() {
    let measured = |attribution| {
        let reward = shaped_with(|reward| reward.committed_attribution = attribution);
        reward.profile().measures_committed
    };

    assert!(measured(CommittedAttribution::Live));
    assert!(!measured(CommittedAttribution::Frozen));
    assert!(made("basic_plus").profile().measures_committed);
    assert!(!made("escrow").profile().measures_committed);
}

#[test]
fn no_reward_of_the_prior_art_can_be_exploited() {
    for name in NAMES {
        check_strategies(&config(name, "()"), &modes());
    }
}

#[test]
fn pay_for_growing_seeds_is_found_out() {
    let generous = config("shaped", "(contribution_weight: 1.0, growing_pay_steps: None)");
    let failed = failures(generous, &modes());
    assert!(failed.contains(&"hold_half"), "{failed:?}");
}
