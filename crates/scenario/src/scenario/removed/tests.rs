use super::*;
use crate::scenario::tests::catalog::catalog;
use crate::scenario::{Input, Override, SCENARIO, load, paths};

#[test]
fn nothing_in_the_table_can_be_written_today() {
    for (path, _) in rows() {
        match path.split_once(": ") {
            None => assert!(paths::lookup(&SCENARIO, path).is_err(), "{path}"),
            Some((field, value)) => {
                paths::lookup(&SCENARIO, field).expect("the choice is there");
                assert!(rejection(&format!("{field}={value}")).contains("removed in"), "{path}");
            }
        }
    }
}

/// What a scenario with one setting is answered.
fn rejection(setting: &str) -> String {
    let (path, value) = setting.split_once('=').expect("a setting");
    let input = Input {
        label: "test.ron",
        text: "()",
        overrides: &[Override::flag("--set", path, value)],
    };
    load(&input, &catalog()).expect_err("it is removed").to_string()
}

#[test]
fn a_removed_field_is_answered_by_what_stands_in_its_place() {
    let input = Input {
        label: "old.ron",
        text: "(learner: (critic: (epochs: 20)), attribution: (strategy: full_factorial))",
        overrides: &[],
    };
    insta::assert_snapshot!(load(&input, &catalog()).expect_err("both are removed"));
    insta::assert_snapshot!(rejection("run.on_oom=fail"));
}
