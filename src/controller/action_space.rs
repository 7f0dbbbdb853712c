//! What a scenario leaves of the action space (spec 03 §3.3, §3.4).
//!
//! The first modifier of every mask: what it clears no controller is offered, learned or not.

use bevy_ecs::resource::Resource;

use super::action::{Head, indices_of, relevant};
use super::{Choices, MaskRow, MaskSet, PolicyError};
use crate::growth::{
    AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleCommand, LifecycleOp, Tempo,
};
use crate::scenario::ActionSpace;

/// The mask rows of [`Head::PARAMETERS`], in the same order.
const PARAMETER_ROWS: [MaskRow; Head::PARAMETERS.len()] = [
    MaskRow::Style,
    MaskRow::Tempo,
    MaskRow::AlphaTarget,
    MaskRow::AlphaSpeed,
    MaskRow::AlphaCurve,
];

/// The allowed members of every head but the slots', which `lifecycle.slots` chooses.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedActions {
    ops: Choices,
    blueprints: Choices,
    /// In the order of [`Head::PARAMETERS`].
    parameters: [Choices; Head::PARAMETERS.len()],
}

impl AllowedActions {
    /// `blueprints`: all names, by index.
    ///
    /// # Errors
    /// An unknown blueprint, a list that allows nothing, or operations without waiting.
    pub fn new(space: &ActionSpace, blueprints: &[&str]) -> Result<Self, PolicyError> {
        let ops = allowed(&space.allowed_ops, "allowed_ops", LifecycleOp::ALL.len(), |op| {
            op.code()
        })?;
        if !ops.contains(LifecycleOp::Wait.code()) {
            return Err(refusal("allowed_ops", "lacks \"wait\", which is always possible"));
        }
        let index_of = |name: &String| {
            let index = blueprints.iter().position(|known| known.eq_ignore_ascii_case(name));
            index.ok_or_else(|| refusal("blueprint", format!("`{name}` is no choice here")))
        };
        let indices = match &space.blueprint {
            Some(names) => Some(names.iter().map(index_of).collect::<Result<_, _>>()?),
            None => None,
        };
        let size = |head: Head| head.size(0, 0);
        Ok(Self {
            ops,
            blueprints: allowed(&indices, "blueprint", blueprints.len(), |&index: &usize| index)?,
            parameters: [
                allowed(&space.style, "style", size(Head::Style), |member| member.code())?,
                allowed(&space.tempo, "tempo", size(Head::Tempo), |member| member.code())?,
                allowed(&space.alpha_target, "alpha_target", size(Head::AlphaTarget), |member| {
                    member.code()
                })?,
                allowed(&space.alpha_speed, "alpha_speed", size(Head::AlphaSpeed), |member| {
                    member.code()
                })?,
                allowed(&space.alpha_curve, "alpha_curve", size(Head::AlphaCurve), |member| {
                    member.code()
                })?,
            ],
        })
    }

    /// Of all blueprints, grown by this host or not.
    pub fn blueprints(&self) -> Choices {
        self.blueprints
    }

    /// Clears what is not allowed.
    pub fn restrict(&self, masks: &mut MaskSet) {
        for &op in LifecycleOp::ALL.iter().filter(|op| !self.ops.contains(op.code())) {
            masks.clear(MaskRow::Slots(op), !Choices::NONE);
        }
        for slot in 0..masks.slots() {
            masks.clear(MaskRow::Blueprints { slot }, !self.blueprints);
        }
        for (row, &members) in PARAMETER_ROWS.iter().zip(&self.parameters) {
            masks.clear(*row, !members);
        }
    }

    /// All of a command's choices but its slot are allowed.
    pub fn allows(&self, command: &LifecycleCommand) -> bool {
        let indices = indices_of(command, 0);
        Head::ALL
            .into_iter()
            .filter(|&head| relevant(command.op(), head))
            .all(|head| self.contains(head, indices[head as usize].into()))
    }

    /// `head:member` of everything that is not allowed, in order: part of what a policy was trained for.
    pub fn excluded(&self, blueprints: &[String]) -> Vec<String> {
        let mut excluded = Vec::new();
        for head in Head::ALL {
            let names: Vec<&str> = match head {
                Head::Slot => continue,
                Head::Blueprint => blueprints.iter().map(String::as_str).collect(),
                Head::Style => GerminationStyle::ALL.iter().map(|member| member.name()).collect(),
                Head::Tempo => Tempo::ALL.iter().map(|member| member.name()).collect(),
                Head::AlphaTarget => AlphaTarget::ALL.iter().map(|member| member.name()).collect(),
                Head::AlphaSpeed => AlphaSpeed::ALL.iter().map(|member| member.name()).collect(),
                Head::AlphaCurve => AlphaCurveAction::ALL.iter().map(|member| member.name()).collect(),
                Head::Op => LifecycleOp::ALL.iter().map(|member| member.name()).collect(),
            };
            let missing = names
                .iter()
                .enumerate()
                .filter(|(member, _)| !self.contains(head, *member));
            excluded.extend(missing.map(|(_, name)| format!("{head}:{name}")));
        }
        excluded
    }

    fn contains(&self, head: Head, member: usize) -> bool {
        match head {
            Head::Slot => true,
            Head::Blueprint => self.blueprints.contains(member),
            Head::Op => self.ops.contains(member),
            _ => self.parameters[head as usize - Head::PARAMETERS[0] as usize].contains(member),
        }
    }
}

/// The members of a list; all `size` of them where there is none.
fn allowed<T>(
    list: &Option<Vec<T>>,
    field: &str,
    size: usize,
    code: impl Fn(&T) -> usize,
) -> Result<Choices, PolicyError> {
    match list {
        None => Ok(Choices::first_n(size)),
        Some(list) if list.is_empty() => Err(refusal(field, "allows nothing; leave it out to allow everything")),
        Some(list) => Ok(list.iter().map(code).collect()),
    }
}

fn refusal(field: &str, why: impl Into<String>) -> PolicyError {
    PolicyError::config(format!("policy.masks.action_space.{field}"), why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::controller::fixtures::{AT, BLUEPRINT_NAMES, any_limits, any_reports, commands, empty, limits, masks};

    fn names(list: &[&str]) -> Option<Vec<String>> {
        Some(list.iter().map(|name| (*name).to_string()).collect())
    }

    fn of(space: &ActionSpace) -> AllowedActions {
        AllowedActions::new(space, &BLUEPRINT_NAMES).unwrap()
    }

    fn refused(space: &ActionSpace) -> String {
        AllowedActions::new(space, &BLUEPRINT_NAMES).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_listed_is_masked() {
        let allowed = of(&ActionSpace {
            allowed_ops: Some(vec![LifecycleOp::Wait, LifecycleOp::Germinate]),
            blueprint: names(&["norm", "conv_heavy"]),
            tempo: Some(vec![Tempo::Slow]),
            ..ActionSpace::default()
        });
        let mut masks = masks(&empty(3), &limits(3));

        allowed.restrict(&mut masks);

        assert_eq!(masks.blueprints_for(1).iter().collect::<Vec<_>>(), [3, 7]);
        let tempos = masks.effective(Head::Tempo, LifecycleOp::Germinate, 0);
        assert_eq!(tempos.single(), Some(Tempo::Slow.code()));
        assert_eq!(masks.effective(Head::Style, LifecycleOp::Germinate, 0).len(), 4);
        assert_eq!(masks.check(AT, &empty(3)), Ok(()));
    }

    #[test]
    fn without_a_list_nothing_is_masked() {
        let before = masks(&empty(3), &limits(3));
        let mut after = before.clone();
        of(&ActionSpace::default()).restrict(&mut after);
        assert_eq!(after, before);
    }

    #[test]
    fn a_space_that_leaves_nothing_is_refused_by_the_name_of_its_field() {
        let no_wait = ActionSpace {
            allowed_ops: Some(vec![LifecycleOp::Prune]),
            ..ActionSpace::default()
        };
        assert_eq!(
            refused(&no_wait),
            "`policy.masks.action_space.allowed_ops`: lacks \"wait\", which is always possible"
        );
        let nothing = ActionSpace {
            style: Some(vec![]),
            ..ActionSpace::default()
        };
        assert_eq!(
            refused(&nothing),
            "`policy.masks.action_space.style`: allows nothing; leave it out to allow everything"
        );
        let unknown = ActionSpace {
            blueprint: names(&["conv_odd"]),
            ..ActionSpace::default()
        };
        assert_eq!(
            refused(&unknown),
            "`policy.masks.action_space.blueprint`: `conv_odd` is no choice here"
        );
    }

    #[test]
    fn what_is_excluded_is_listed_head_by_head() {
        let allowed = of(&ActionSpace {
            allowed_ops: Some(vec![
                LifecycleOp::Wait,
                LifecycleOp::Germinate,
                LifecycleOp::Prune,
                LifecycleOp::Fossilize,
                LifecycleOp::Advance,
            ]),
            alpha_target: Some(vec![AlphaTarget::Full]),
            ..ActionSpace::default()
        });
        let blueprints: Vec<String> = BLUEPRINT_NAMES.map(String::from).to_vec();
        assert_eq!(
            allowed.excluded(&blueprints),
            ["alpha_target:HALF", "alpha_target:SEVENTY", "op:SET_ALPHA_TARGET"]
        );
    }

    proptest! {
        /// Spec 03 §3.5: whatever is listed, waiting stays and no valid op lacks a choice.
        #[test]
        fn restricted_masks_are_never_empty_and_allow_exactly_what_is_listed(
            reports in any_reports(3),
            limits in any_limits(3),
            ops in 0usize..32,
            blueprints in 1usize..128,
            styles in 1usize..16,
        ) {
            fn pick<T: Copy>(bits: usize, members: &[T]) -> Vec<T> {
                let chosen = members.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
                chosen.map(|(_, member)| *member).collect()
            }
            let ops = pick(ops << 1 | 1, LifecycleOp::ALL);
            let styles = pick(styles, GerminationStyle::ALL);
            let allowed = of(&ActionSpace {
                allowed_ops: Some(ops),
                blueprint: Some(pick(blueprints, &BLUEPRINT_NAMES[1..]).into_iter().map(String::from).collect()),
                style: Some(styles),
                ..ActionSpace::default()
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
}
