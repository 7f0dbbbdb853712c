//! What holds for all of these rewards: sums, what they need, and that nothing but growth pays.

use proptest::prelude::*;

use super::fixtures::*;
use super::settings::CommittedAttribution;
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
fn what_a_mode_needs_is_as_old_as_it_allows() {
    let needs = |name, settings| modes().of(&config(name, settings)).unwrap().profile().measurement;

    let fresh = MeasurementNeed::Fresh { max_staleness: 3 };
    assert_eq!(needs("shaped", "(max_staleness: 3)"), fresh);
    assert_eq!(needs("basic", "()"), MeasurementNeed::AtCommit { max_staleness: 0 });
    assert_eq!(needs("minimal", "()"), MeasurementNeed::AtTheEnd);
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
fn pay_for_growing_seeds_or_for_removing_harmful_ones_is_found_out() {
    let generous = config("shaped", "(contribution_weight: 1.0, growing_pay_steps: None)");
    let bounty = config("escrow", "(shaped: (prune_hurting_bonus: 20.0))");
    for (config, strategy) in [(generous, "hold_half"), (bounty, "degrade_recover")] {
        let failed = failures(config, &modes());
        assert!(failed.contains(&strategy), "{strategy}: {failed:?}");
    }
}
