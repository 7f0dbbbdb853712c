use super::*;
use crate::schema::section;

/// A registry of closures, each with state of its own.
fn offsets() -> Registry<dyn Fn(i32) -> i32 + Send + Sync> {
    let mut offsets = Registry::<dyn Fn(i32) -> i32 + Send + Sync>::new("part");
    let by = 3;
    offsets.register("three", "adds three", Arc::new(move |number| number + by));
    offsets
}

#[test]
fn a_part_is_found_in_either_case_and_keeps_the_name_that_it_was_registered_under() {
    let offsets = offsets();
    let (name, add) = offsets.get("THREE", &Settings::default()).expect("it is registered");
    assert_eq!((name, add(4)), ("three", 7));
}

#[test]
fn the_first_name_that_is_taken_or_cannot_be_one_is_kept() {
    let mut taken = offsets();
    taken.register("Three", "again", Arc::new(|number| number));
    taken.register("a.b", "has a dot", Arc::new(|number| number));
    let mut bad = offsets();
    bad.register("a.b", "has a dot", Arc::new(|number| number));

    let refused = |registry: &Registry<_>| registry.refused().map(ToString::to_string).unwrap_or_default();
    insta::assert_snapshot!(refused(&taken), @"the part name `Three` is taken; register yours under another");
    insta::assert_snapshot!(refused(&bad), @r#"the part "a.b" cannot be registered: a name consists of letters, digits, `_` and `-`"#);
    assert_eq!(taken.iter().count(), 1);
}

#[test]
fn an_unknown_name_lists_what_there_is() {
    let error = offsets()
        .get("four", &Settings::default())
        .err()
        .map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some("no part is called `four`; there are: three"));
}

section! {
    /// Settings.
    pub struct Shift {
        /// The number that is added.
        by: i64 = 3;
    }
}

#[test]
fn a_part_is_made_from_the_settings_that_it_declares() {
    let mut offsets = Registry::<dyn Fn(i64) -> i64 + Send + Sync>::new("part");
    offsets.register_with("shift", "adds what is set", |shift: Shift| {
        Arc::new(move |number| number + shift.by)
    });

    let made = |settings: &str| {
        let settings: Settings = ron_options().from_str(settings).expect("RON");
        let made = offsets.get("shift", &settings);
        made.map(|(_, add)| add(4)).map_err(|error| error.to_string())
    };

    assert_eq!(made("()"), Ok(7));
    assert_eq!(made("(by: 5)"), Ok(9));
    insta::assert_snapshot!(made("(bye: 5)").unwrap_err(), @"the settings of the part `shift` cannot be read: 1:2-1:5: Unexpected field named `bye` in `Shift`, expected `by` instead");
    let (_, declared) = offsets.settings().next().expect("one is registered");
    assert_eq!(declared.defaults, "(by:3)");
}
