use std::sync::Arc;

use super::*;

#[test]
fn what_a_set_says_and_what_it_fails_with_arrives() {
    let mut sets = DataRegistry::default();
    let fail = |request: &DataRequest| Err::<CustomImages, _>(format!("no such colour: {}", request.params));
    sets.register("colours", "by colour", Arc::new(fail));
    let request = DataRequest {
        params: "mauve",
        folder: None,
    };

    let error = sets.load(&DataName("colours".into()), &request).unwrap_err();

    insta::assert_snapshot!(error, @"data 'colours': the application could not provide it (no such colour: mauve); see task.data.params");
}
