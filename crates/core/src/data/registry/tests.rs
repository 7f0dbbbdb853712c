use std::sync::Arc;

use super::*;

#[test]
fn what_a_set_fails_with_arrives() {
    let mut sets = DataRegistry::default();
    let fail = |_: &DataRequest| Err::<CustomImages, _>("no such colour: mauve");
    sets.register("colours", "by colour", Arc::new(fail));
    let request = DataRequest { folder: None };

    let refused = sets.load("colours", &Settings::default(), &request);

    insta::assert_snapshot!(refused.unwrap_err(), @"data 'colours': the application could not provide it (no such colour: mauve); see task.data.settings");
}
