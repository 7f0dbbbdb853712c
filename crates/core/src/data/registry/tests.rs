use std::sync::Arc;

use super::*;

#[test]
fn what_a_set_fails_with_arrives() {
    let mut sets = DataRegistry::default();
    let fail = |_: &DataRequest| Err::<CustomImages, _>("no such colour: mauve");
    sets.register("colours", "by colour", Arc::new(fail));
    let request = DataRequest { folder: None };

    let error = sets
        .load(&DataName("colours".into()), &Settings::default(), &request)
        .unwrap_err();

    insta::assert_snapshot!(error, @"data 'colours': the application could not provide it (no such colour: mauve); see task.data.settings");
}
