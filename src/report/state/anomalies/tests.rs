use super::*;
use crate::telemetry::examples::{context_at, episode_finished};
use crate::telemetry::{Anomaly, Num};

fn anomaly(rule: &str, state: AnomalyState) -> Anomaly {
    Anomaly {
        rule: rule.into(),
        state,
        value: Num(2.0),
        threshold: Num(1.0),
        head: None,
    }
}

fn onset(env: u32, rule: &str, severity: Severity) -> Event {
    Event::env(context_at(env, 0, 3), anomaly(rule, AnomalyState::Onset)).severity(severity)
}

fn active(found: &Anomalies) -> Vec<(&str, Option<u32>)> {
    found
        .active()
        .iter()
        .map(|found| (found.rule.as_str(), found.env))
        .collect()
}

#[test]
fn the_worst_that_holds_comes_first_and_what_is_cleared_is_over() {
    let mut found = Anomalies::default();
    found.apply(&onset(0, "dead_host", Severity::Warning));
    found.apply(&onset(1, "dead_host", Severity::Warning));
    found.apply(&onset(0, "numerical_instability", Severity::Error));

    assert_eq!(
        active(&found),
        [
            ("numerical_instability", Some(0)),
            ("dead_host", Some(1)),
            ("dead_host", Some(0))
        ]
    );

    found.apply(&Event::env(
        context_at(1, 0, 5),
        anomaly("dead_host", AnomalyState::Cleared),
    ));
    assert_eq!(
        active(&found),
        [("numerical_instability", Some(0)), ("dead_host", Some(0))]
    );
    assert_eq!(found.counts["dead_host"], 2);
}

#[test]
fn what_is_about_an_env_ends_with_its_episode() {
    let mut found = Anomalies::default();
    found.apply(&onset(0, "dead_host", Severity::Warning));
    found.apply(&onset(1, "dead_host", Severity::Warning));

    found.apply(&Event::env(context_at(0, 0, 9), episode_finished()));

    assert_eq!(active(&found), [("dead_host", Some(1))]);
    assert_eq!(found.newest().count(), 2);
}

#[test]
fn what_holds_stays_when_many_others_come_and_go() {
    let mut found = Anomalies::default();
    found.apply(&onset(9, "dead_host", Severity::Warning));
    for _ in 0..3 * KEPT {
        found.apply(&onset(0, "gradient_spike", Severity::Warning));
        found.apply(&Event::env(context_at(0, 0, 9), episode_finished()));
    }

    assert_eq!(found.newest().count(), KEPT);
    assert_eq!(active(&found), [("dead_host", Some(9))]);
}
