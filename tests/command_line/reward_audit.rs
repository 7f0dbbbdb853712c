//! `simic-engine reward-audit`.

use crate::program::{engine, succeeds, text};

#[test]
fn the_shipped_scenarios_pay_for_nothing_but_growth() {
    for scenario in ["quickstart", "digits_rescue", "synth_rescue"] {
        let path = format!("scenarios/{scenario}.ron");
        assert!(succeeds(&engine(&["reward-audit", &path])).contains("honest_growth"));
    }
}

#[test]
fn a_reward_that_can_be_exploited_is_named_with_the_strategy_that_shows_it() {
    let leaky = "reward=contribution(shaped((growing_pay_steps: None)))";
    let audited = engine(&["reward-audit", "scenarios/quickstart.ron", "--set", leaky]);

    assert_eq!(audited.status.code(), Some(1));
    assert!(text(&audited.stdout).contains("FAILS"));
    let said = text(&audited.stderr);
    assert!(said.contains("reward shaped can be exploited: hold_"), "{said}");
}

#[test]
fn an_audit_is_a_table_for_people_and_a_document_for_programs() {
    insta::assert_snapshot!(succeeds(&engine(&["reward-audit", "scenarios/quickstart.ron"])));

    let json = succeeds(&engine(&["reward-audit", "scenarios/quickstart.ron", "--json"]));
    let audit: serde_json::Value = serde_json::from_str(&json).expect("a document");
    assert_eq!(audit["mode"], "committed");
    assert_eq!(audit["rows"][0]["strategy"], "wait");
}
