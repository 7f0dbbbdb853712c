use super::*;

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
    let (name, add) = offsets.get("THREE").expect("it is registered");
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
    insta::assert_snapshot!(refused(&bad), @r#"the part "a.b" cannot be registered: a name has at least one letter or digit, and beside these `_` and `-` alone"#);
    assert_eq!(taken.iter().count(), 1);
}

#[test]
fn an_unknown_name_lists_what_there_is() {
    let error = offsets().get("four").map(|(name, _)| name.to_owned()).unwrap_err();
    assert_eq!(error.to_string(), "no part is called `four`; there are: three");
}
