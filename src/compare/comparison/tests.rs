//! Comparisons of made-up episodes.

use serde_json::json;

use super::*;
use crate::compare::statistics::{Arm, Interval};

fn played(name: &str, is_policy: bool, accuracies: &[f64], rent: f64) -> Played {
    let episodes = accuracies.iter().enumerate().map(|(env, accuracy)| {
        let outcome = json!({
            "seed": 42, "round": 0, "env": env, "accuracy": accuracy, "test_accuracy": accuracy, "rent": rent,
            "reward": 1.0, "param_ratio": 1.5, "rollbacks": 0,
        });
        serde_json::from_value(outcome).expect("an outcome")
    });
    Played {
        name: name.into(),
        is_policy,
        episodes: vec![episodes.collect()],
    }
}

#[track_caller]
fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
}

/// Five pairs whose interval was computed independently.
#[test]
fn a_policy_is_compared_with_each_baseline_pair_by_pair() {
    let comparison = Comparison::new(
        vec![
            played("policy", true, &[61.2, 62.0, 60.5, 63.1, 61.8], 0.5),
            played("wait", false, &[59.9, 60.1, 60.4, 61.0, 58.7], 0.0),
        ],
        1,
        Some(4.0),
    );

    let [difference] = &comparison.differences[..] else {
        panic!("{:?}", comparison.differences);
    };
    let paired = &difference.accuracy;
    assert_close(paired.difference.mean.value, 1.7);
    let Interval { low, high } = paired.difference.mean.interval.expect("five pairs");
    assert!((0.1..1.7).contains(&low) && 1.7 < high && high <= 3.1);
    assert_eq!((paired.wins, paired.ties, paired.losses), (5, 0, 0));
    let net = &difference.accuracy_minus_rent;
    assert_close(net.difference.mean.value, 1.2);
    assert_eq!((net.wins, net.ties, net.losses), (4, 0, 1));
    // Half the host's size at 4 points a host.
    let own = comparison.players[0].accuracy_minus_price.expect("there is a price");
    assert_close(own.mean.value, 61.72 - 2.0);
    // Both have the same size.
    let paired = difference.accuracy_minus_price.expect("there is a price");
    assert_close(paired.difference.mean.value, 1.7);
}

#[test]
fn equals_tie_without_any_doubt() {
    let accuracies = [50.0, 60.0, 70.0, 80.0, 90.0];
    let player = |name, is_policy| played(name, is_policy, &accuracies, 0.0);

    let players = vec![player("policy", true), player("wait", false)];
    let paired = Comparison::new(players, 1, None).differences[0].accuracy;

    assert_eq!((paired.wins, paired.ties, paired.losses), (0, 5, 0));
    let Estimate { value, interval } = paired.difference.mean;
    assert_eq!((value, interval), (0.0, Some(Interval { low: 0.0, high: 0.0 })));
}

#[test]
fn an_episode_that_one_controller_lost_is_left_out_for_all() {
    let mut policy = played("policy", true, &[60.0, 0.0, 62.0], 0.0);
    policy.episodes[0][1].accuracy = None;
    let baseline = played("wait", false, &[50.0, 99.0, 50.0], 0.0);

    let comparison = Comparison::new(vec![policy, baseline], 1, None);

    let means = [0, 1].map(|player| comparison.players[player].accuracy.mean.value);
    assert_eq!((comparison.unmeasured, means), (1, [61.0, 50.0]));
    assert_eq!(comparison.differences[0].accuracy.wins, 2);
}

#[test]
fn what_may_be_said_of_a_policy_is_corrected_for_all_its_opponents() {
    let policy = [60.0, 62.0, 64.0, 61.0, 59.0, 63.0, 65.0, 60.0];
    let [worse, better] = [-20.0, 10.0].map(|shift| policy.map(|accuracy| accuracy + shift));
    let players = |episodes: usize| {
        vec![
            played("policy", true, &policy[..episodes], 0.0),
            played("wait", false, &worse[..episodes], 0.0),
            played("from scratch", false, &better[..episodes], 0.0),
            played("same", false, &policy[..episodes], 0.0),
        ]
    };
    let verdicts = |comparison: &Comparison| -> Vec<Verdict> {
        let differences = comparison.differences.iter();
        differences.map(|difference| difference.verdict).collect()
    };

    let comparison = Comparison::new(players(8), 1, None);

    let [better, worse] = [Arm::First, Arm::Second].map(Verdict::Better);
    assert_eq!(verdicts(&comparison), [better, worse, Verdict::Equivalent]);
    // 2 of the 256 assignments of signs are as extreme, and three opponents are tested.
    assert_close(comparison.differences[0].adjusted_p, 3.0 * 2.0 / 256.0);
    let few = Comparison::new(players(3), 1, None);
    assert_eq!(verdicts(&few), [Verdict::InsufficientData; 3]);
}
