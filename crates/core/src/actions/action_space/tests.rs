use proptest::prelude::*;

use super::*;
use crate::actions::fixtures::{AT, BLUEPRINT_NAMES, any_limits, any_reports, commands, empty, limits, masks};
use crate::scenario::fixtures::every_action;

fn of(space: &ActionSpace) -> AllowedActions {
    AllowedActions::new(space, &BLUEPRINT_NAMES)
}

#[test]
fn what_is_not_listed_is_masked_where_there_is_a_list() {
    let allowed = of(&ActionSpace {
        allowed_ops: Some(vec![LifecycleOp::Wait, LifecycleOp::Germinate]),
        blueprint: Some(vec!["norm".into(), "conv_heavy".into()]),
        tempo: Some(vec![Tempo::Slow]),
        ..every_action()
    });
    let mut masks = masks(&empty(3), &limits());
    let before = masks.clone();
    of(&every_action()).restrict(&mut masks);
    assert_eq!(masks, before);

    allowed.restrict(&mut masks);

    assert_eq!(masks.blueprints_for(1).iter().collect::<Vec<_>>(), [3, 7]);
    let tempos = masks.effective(Head::Tempo, LifecycleOp::Germinate, 0);
    assert_eq!(tempos.single(), Some(Tempo::Slow.code()));
    assert_eq!(masks.effective(Head::Style, LifecycleOp::Germinate, 0).len(), 4);
    assert_eq!(masks.check(AT, &empty(3)), Ok(()));
}

#[test]
fn what_is_excluded_is_listed_head_by_head() {
    let ops = LifecycleOp::ALL.into_iter();
    let ops = ops.filter(|&op| op != LifecycleOp::SetAlphaTarget);
    let allowed = of(&ActionSpace {
        allowed_ops: Some(ops.collect()),
        alpha_target: Some(vec![AlphaTarget::Full]),
        ..every_action()
    });
    let blueprints: Vec<String> = BLUEPRINT_NAMES.map(String::from).to_vec();
    let excluded = ["alpha_target:HALF", "alpha_target:SEVENTY", "op:SET_ALPHA_TARGET"];
    assert_eq!(allowed.excluded(&blueprints), excluded);
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
            ..every_action()
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
