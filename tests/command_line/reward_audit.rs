//! `simic-engine reward-audit`.

use crate::program::{assert_has, each, ends_with, engine, json, succeeds, text};

#[test]
fn the_shipped_scenarios_pay_for_nothing_but_growth() {
    for scenario in ["quickstart", "digits_rescue", "synth_rescue"] {
        let audited = engine(&format!("reward-audit scenarios/{scenario}.ron"));
        assert_has(&succeeds(&audited), &["honest_growth"]);
    }
}

#[test]
fn a_reward_that_can_be_exploited_is_named_with_the_strategy_that_shows_it() {
    let leaky = "--set reward=contribution(shaped((growing_pay_steps:None)))";
    let audited = engine(&format!("reward-audit scenarios/quickstart.ron {leaky}"));

    let said = ends_with(1, &audited);
    assert_has(&text(&audited.stdout), &["FAILS"]);
    assert_has(&said, &["reward shaped can be exploited: hold_"]);
}

#[test]
fn an_audit_is_a_table_for_people_and_a_document_for_programs() {
    insta::assert_snapshot!(succeeds(&engine("reward-audit scenarios/quickstart.ron")));

    let audit = json(&succeeds(&engine("reward-audit scenarios/quickstart.ron --json")));
    assert_eq!(audit["mode"], "committed");
    assert_eq!(each(&audit["rows"], "strategy")[0], "wait");
}
