//! What is said of made-up episodes.

use super::*;
use crate::compare::statistics::Arm;
use crate::compare::{EpisodeOutcome, PlayedEpisodes};
use crate::telemetry::{BigInteger, EpisodeCompute};

fn row(name: &str, control: Option<Control>, accuracies: &[f64]) -> PlayedRow {
    let outcome = |(env, &accuracy): (usize, &f64)| EpisodeOutcome {
        seed: BigInteger(1),
        round: 4,
        env,
        accuracy: Some(accuracy),
        committed_accuracy: None,
        test_accuracy: None,
        loss: None,
        test_loss: None,
        rent: Some(0.0),
        reward: 0.0,
        param_ratio: 1.5,
        rollbacks: 0,
        compute: Some(EpisodeCompute {
            train_macs: 3_000_000_000,
            val_macs: 1_000_000_000,
        }),
        decisions: None,
    };
    let outcomes: Vec<_> = accuracies.iter().enumerate().map(outcome).collect();
    PlayedRow {
        name: name.into(),
        control,
        is_reference: control.is_none(),
        steps: 60,
        host_ratio: if control == Some(Control::Widened) { 4.0 } else { 1.0 },
        found_by: None,
        schedules: None,
        played: vec![PlayedEpisodes {
            standing: vec![Vec::new(); outcomes.len()],
            outcomes,
            seconds: 16.0,
            data_hash: String::new(),
        }],
    }
}

const POLICY: [f64; 8] = [60.0, 62.0, 64.0, 61.0, 59.0, 63.0, 65.0, 60.0];

fn report() -> ControlReport {
    let worse = POLICY.map(|accuracy| accuracy - 20.0);
    let better = POLICY.map(|accuracy| accuracy + 10.0);
    ControlReport::new(
        vec![
            row("policy", None, &POLICY),
            row("never grown", Some(Control::NeverGrown), &worse),
            row("final", Some(Control::EqualEpochs), &better),
            row("wide", Some(Control::Widened), &POLICY),
        ],
        1,
        Some(2.0),
    )
}

/// Of hosts that are four times as large a policy pays for the six times that it has, not for half of its own.
#[test]
fn what_the_size_costs_is_reckoned_by_the_scenario_s_host() {
    let rows = report().rows;

    let net = |index: usize| rows[index].accuracy_minus_price.expect("there is a price");
    assert!((net(0) - (61.75 - 1.0)).abs() < 1e-9, "{}", net(0));
    assert!((net(3) - (61.75 - 10.0)).abs() < 1e-9, "{}", net(3));
}

#[test]
fn each_control_is_compared_with_the_policy_episode_by_episode() {
    let report = report();

    assert_eq!(report.rows[0].against, None);
    let against: Vec<_> = report.rows[1..].iter().map(|row| row.against.unwrap()).collect();
    let means = against.iter().map(|against| against.accuracy.difference.mean.value);
    assert_eq!(means.collect::<Vec<_>>(), [20.0, -10.0, 0.0]);
    let verdicts = against.iter().map(|against| against.verdict.unwrap());
    assert_eq!(
        verdicts.collect::<Vec<_>>(),
        [
            Verdict::Better(Arm::First),
            Verdict::Better(Arm::Second),
            Verdict::Equivalent
        ]
    );
    // 2 of the 256 assignments of signs are as extreme; three rows are tested.
    assert!((against[0].adjusted_p - 3.0 * 2.0 / 256.0).abs() < 1e-12);
}

#[test]
fn sizes_are_those_of_the_scenario_s_host_and_costs_those_of_an_episode() {
    let report = report();

    let sizes: Vec<f64> = report.rows.iter().map(|row| row.param_ratio).collect();
    assert_eq!(sizes, [1.5, 1.5, 1.5, 6.0]);
    assert_eq!((report.rows[0].gmacs, report.rows[0].seconds), (Some(4.0), 2.0));
}

#[test]
fn a_few_episodes_say_nothing() {
    let report = ControlReport::new(
        vec![
            row("policy", None, &POLICY[..3]),
            row("never grown", Some(Control::NeverGrown), &[1.0, 2.0, 3.0]),
        ],
        1,
        None,
    );
    assert_eq!(report.rows[1].against.unwrap().verdict, Some(Verdict::InsufficientData));
}
