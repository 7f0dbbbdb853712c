use super::*;
use crate::engine::built_in_names;
use crate::scenario::TaskChoice;

#[test]
fn what_differs_between_two_scenarios_is_named_by_its_path() {
    let before = Scenario::default();
    let mut now = before.clone();
    assert_eq!(changed_fields(&before, &now), []);

    now.attribution.include_committed = true;

    let changed = changed_fields(&before, &now);
    assert_eq!(
        changed,
        [("attribution.include_committed".into(), false.into(), true.into())]
    );
}

#[test]
fn a_field_of_a_task_that_is_written_out_has_the_path_by_which_it_is_set() {
    let known = built_in_names();
    let with_batch = |batch_size| {
        let mut task = Scenario::default().task_spec(&known).expect("the default task");
        task.batch_size = batch_size;
        Scenario {
            task: TaskChoice::Custom(Box::new(task)),
            ..Scenario::default()
        }
    };

    let changed = changed_fields(&with_batch(64), &with_batch(32));

    assert_eq!(changed, [("task.batch_size".into(), 64.into(), 32.into())]);
}

#[test]
fn a_section_that_may_change_covers_its_fields_and_no_others() {
    assert!(covers("learner.lr", "learner.lr"));
    assert!(covers("learner", "learner.lr"));
    assert!(!covers("learner.lr", "learner.lr_end_factor"));
    assert!(!covers("learner.lr", "learner"));
}
