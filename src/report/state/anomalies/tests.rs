use super::*;
use crate::telemetry::examples::{context_at, episode_finished};
use crate::telemetry::{Num, Severity};

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

fn cleared(env: u32, rule: &str) -> Event {
    Event::env(context_at(env, 0, 5), anomaly(rule, AnomalyState::Cleared))
}

fn after(events: impl IntoIterator<Item = Event>) -> Anomalies {
    let mut found = Anomalies::default();
    events.into_iter().for_each(|event| found.apply(&event));
    found
}

/// Anomalies that hold, as `rule env`.
fn active(found: &Anomalies) -> Vec<String> {
    let active = found.active().into_iter();
    active
        .map(|found| format!("{} {:?}", found.data.rule, found.event.env))
        .collect()
}

#[test]
fn the_worst_that_holds_comes_first_and_what_is_cleared_is_over() {
    let mut found = after([
        onset(0, "dead_host", Severity::Warning),
        onset(1, "dead_host", Severity::Warning),
        onset(0, "numerical_instability", Severity::Error),
    ]);
    let [unstable, dead_1, dead_0] = [
        "numerical_instability Some(0)",
        "dead_host Some(1)",
        "dead_host Some(0)",
    ];
    assert_eq!(active(&found), [unstable, dead_1, dead_0]);

    found.apply(&cleared(1, "dead_host"));
    assert_eq!(active(&found), [unstable, dead_0]);
    assert_eq!(found.counts["dead_host"], 2);
}

#[test]
fn what_is_about_an_env_ends_with_its_episode() {
    let found = after([
        onset(0, "dead_host", Severity::Warning),
        onset(1, "dead_host", Severity::Warning),
        Event::env(context_at(0, 0, 9), episode_finished()),
    ]);

    assert_eq!(active(&found), ["dead_host Some(1)"]);
    assert_eq!(found.newest().count(), 2);
}

#[test]
fn what_holds_stays_when_many_others_come_and_go() {
    let passing = (0..3 * KEPT).flat_map(|_| {
        let ends = Event::env(context_at(0, 0, 9), episode_finished());
        [onset(0, "gradient_spike", Severity::Warning), ends]
    });
    let found = after([onset(9, "dead_host", Severity::Warning)].into_iter().chain(passing));

    assert_eq!(found.newest().count(), KEPT);
    assert_eq!(active(&found), ["dead_host Some(9)"]);
}
