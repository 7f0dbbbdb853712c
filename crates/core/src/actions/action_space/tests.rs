use proptest::prelude::*;

use super::*;
use crate::actions::fixtures::{AT, BLUEPRINT_NAMES, any_limits, any_reports, commands, empty, limits, masks};

fn names(list: &[&str]) -> Option<Vec<String>> {
    Some(list.iter().map(|name| (*name).to_string()).collect())
}

fn of(space: &ActionSpace) -> AllowedActions {
    AllowedActions::new(space, &BLUEPRINT_NAMES)
}

#[test]
fn what_is_not_listed_is_masked() {
    let allowed = of(&ActionSpace {
        allowed_ops: Some(vec![LifecycleOp::Wait, LifecycleOp::Germinate]),
        blueprint: names(&["norm", "conv_heavy"]),
        tempo: Some(vec![Tempo::Slow]),
        ..crate::scenario::fixtures::every_action()
    });
    let mut masks = masks(&empty(3), &limits());

    allowed.restrict(&mut masks);

    assert_eq!(masks.blueprints_for(1).iter().collect::<Vec<_>>(), [3, 7]);
    let tempos = masks.effective(Head::Tempo, LifecycleOp::Germinate, 0);
    assert_eq!(tempos.single(), Some(Tempo::Slow.code()));
    assert_eq!(masks.effective(Head::Style, LifecycleOp::Germinate, 0).len(), 4);
    assert_eq!(masks.check(AT, &empty(3)), Ok(()));
}

#[test]
fn without_a_list_nothing_is_masked() {
    let before = masks(&empty(3), &limits());
    let mut after = before.clone();
    of(&crate::scenario::fixtures::every_action()).restrict(&mut after);
    assert_eq!(after, before);
}

#[test]
fn what_is_excluded_is_listed_head_by_head() {
    let allowed = of(&ActionSpace {
        allowed_ops: Some(vec![
            LifecycleOp::Wait,
            LifecycleOp::Germinate,
            LifecycleOp::Prune,
            LifecycleOp::Commit,
            LifecycleOp::Advance,
        ]),
        alpha_target: Some(vec![AlphaTarget::Full]),
        ..crate::scenario::fixtures::every_action()
    });
    let blueprints: Vec<String> = BLUEPRINT_NAMES.map(String::from).to_vec();
    assert_eq!(
        allowed.excluded(&blueprints),
        ["alpha_target:HALF", "alpha_target:SEVENTY", "op:SET_ALPHA_TARGET"]
    );
}

proptest! {
    /// For any list, waiting stays legal and every valid op keeps a choice in each head.
    #[test]
    fn restricted_masks_are_never_empty_and_allow_exactly_what_is_listed(
        reports in any_reports(3),
        limits in any_limits(),
        ops in 0usize..32,
        blueprints in 1usize..128,
        styles in 1usize..16,
    ) {
        fn pick<T: Copy>(bits: usize, members: &[T]) -> Vec<T> {
            let chosen = members.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
            chosen.map(|(_, member)| *member).collect()
        }
        let ops = pick(ops << 1 | 1, &LifecycleOp::ALL);
        let styles = pick(styles, &GerminationStyle::ALL);
        let allowed = of(&ActionSpace {
            allowed_ops: Some(ops),
            blueprint: Some(pick(blueprints, &BLUEPRINT_NAMES[1..]).into_iter().map(String::from).collect()),
            style: Some(styles),
            ..crate::scenario::fixtures::every_action()
        });
        let before = masks(&reports, &limits);
        let mut after = before.clone();
        allowed.restrict(&mut after);

        prop_assert_eq!(after.check(AT, &reports), Ok(()));
        prop_assert!(after.allows_op(LifecycleOp::Wait));
        for command in commands(3) {
            prop_assert_eq!(after.allows(&command), before.allows(&command) && allowed.allows(&command));
        }
    }
}
