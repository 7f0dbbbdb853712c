//! Made-up episodes, compared.

use super::*;
use crate::compare::statistics::{Arm, Interval};
use crate::telemetry::BigInteger;

fn outcome(env: usize, accuracy: Option<f64>, rent: f64) -> EpisodeOutcome {
    EpisodeOutcome {
        seed: BigInteger(42),
        round: 0,
        env,
        accuracy,
        committed_accuracy: None,
        test_accuracy: accuracy,
        loss: None,
        test_loss: None,
        rent: Some(rent),
        reward: 1.0,
        param_ratio: 1.5,
        rollbacks: 0,
        compute: None,
        decisions: None,
    }
}

fn played(name: &str, is_policy: bool, accuracies: &[f64], rent: f64) -> Played {
    let episodes = accuracies.iter().enumerate();
    Played {
        name: name.into(),
        is_policy,
        episodes: vec![episodes.map(|(env, &value)| outcome(env, Some(value), rent)).collect()],
    }
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
    assert!((paired.difference.mean.value - 1.7).abs() < 1e-9);
    let interval = paired.difference.mean.interval.expect("five pairs");
    assert!(0.1 <= interval.low && interval.low < 1.7 && 1.7 < interval.high && interval.high <= 3.1);
    assert_eq!((paired.wins, paired.ties, paired.losses), (5, 0, 0));
    let net = &difference.accuracy_minus_rent;
    assert!((net.difference.mean.value - 1.2).abs() < 1e-9);
    assert_eq!((net.wins, net.ties, net.losses), (4, 0, 1));
    // Half the host's size at 4 points a host.
    let own = comparison.players[0].accuracy_minus_price.expect("there is a price");
    assert!((own.mean.value - (61.72 - 2.0)).abs() < 1e-9, "{own:?}");
    let paired = difference.accuracy_minus_price.expect("there is a price");
    assert!(
        (paired.difference.mean.value - 1.7).abs() < 1e-9,
        "both are of one size"
    );
}

#[test]
fn equals_tie_without_any_doubt() {
    let accuracies = [50.0, 60.0, 70.0, 80.0, 90.0];
    let players = vec![
        played("policy", true, &accuracies, 0.0),
        played("wait", false, &accuracies, 0.0),
    ];

    let paired = Comparison::new(players, 1, None).differences[0].accuracy;

    assert_eq!((paired.wins, paired.ties, paired.losses), (0, 5, 0));
    let nothing = Estimate {
        value: 0.0,
        interval: Some(Interval { low: 0.0, high: 0.0 }),
    };
    assert_eq!(paired.difference.mean, nothing);
}

#[test]
fn an_episode_that_one_controller_lost_is_left_out_for_all() {
    let mut policy = played("policy", true, &[60.0, 0.0, 62.0], 0.0);
    policy.episodes[0][1].accuracy = None;
    let baseline = played("wait", false, &[50.0, 99.0, 50.0], 0.0);

    let comparison = Comparison::new(vec![policy, baseline], 1, None);

    assert_eq!(comparison.unmeasured, 1);
    let means: Vec<f64> = comparison
        .players
        .iter()
        .map(|player| player.accuracy.mean.value)
        .collect();
    assert_eq!(means, [61.0, 50.0]);
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
        differences.filter_map(|difference| difference.verdict).collect()
    };

    let comparison = Comparison::new(players(8), 1, None);

    assert_eq!(
        verdicts(&comparison),
        [
            Verdict::Better(Arm::First),
            Verdict::Better(Arm::Second),
            Verdict::Equivalent
        ]
    );
    // 2 of the 256 assignments of signs are as extreme; three opponents are tested.
    assert!((comparison.differences[0].adjusted_p - 3.0 * 2.0 / 256.0).abs() < 1e-12);
    let few = Comparison::new(players(3), 1, None);
    assert_eq!(verdicts(&few), [Verdict::InsufficientData; 3]);
}
