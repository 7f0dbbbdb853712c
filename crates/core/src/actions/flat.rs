//! The action space as one list of commands, for policies that know only one choice among N.

use super::choices::Choices;
use super::commands::command_of;
use super::error::PolicyError;
use super::heads::{HEADS, Head, HeadIndices, relevant};
use crate::growth::LifecycleCommand;
use crate::growth::LifecycleOp;
use crate::scenario::ActionSpace;

/// Every command that a scenario's action space allows, on a host with `slots` slots on which `blueprints` can grow. The order is
/// by operation, then by head in storage order. Waiting comes first.
///
/// A parameter that the scenario leaves open (style, tempo, alpha target, speed, curve) keeps its placeholder, because otherwise
/// the list would have hundreds of members. A parameter that the scenario lists is enumerated.
///
/// # Errors
/// None, if the scenario was found valid.
pub fn flat_commands(
    space: &ActionSpace,
    slots: usize,
    blueprints: Choices,
) -> Result<Vec<LifecycleCommand>, PolicyError> {
    let listed = |head: Head, members: Option<Choices>| members.unwrap_or(Choices::only(head.placeholder()));
    fn codes<T>(list: &Option<Vec<T>>, code: impl Fn(&T) -> usize) -> Option<Choices> {
        list.as_ref().map(|list| list.iter().map(code).collect())
    }
    let members = |head: Head| match head {
        Head::Slot => Choices::first_n(slots),
        Head::Blueprint => blueprints,
        Head::Style => listed(head, codes(&space.style, |style| style.code())),
        Head::Tempo => listed(head, codes(&space.tempo, |tempo| tempo.code())),
        Head::AlphaTarget => listed(head, codes(&space.alpha_target, |target| target.code())),
        Head::AlphaSpeed => listed(head, codes(&space.alpha_speed, |speed| speed.code())),
        Head::AlphaCurve => listed(head, codes(&space.alpha_curve, |curve| curve.code())),
        Head::Op => codes(&space.allowed_ops, |op| op.code()).unwrap_or(Choices::first_n(LifecycleOp::ALL.len())),
    };
    let mut actions: Vec<HeadIndices> = Vec::new();
    for op in members(Head::Op).iter().filter_map(LifecycleOp::from_code) {
        let mut branch = vec![[0; HEADS]];
        for head in Head::ALL {
            let choices = match (head, relevant(op, head)) {
                (Head::Op, _) => Choices::only(op.code()),
                (_, true) => members(head),
                (_, false) => Choices::only(head.placeholder()),
            };
            let with = |action: HeadIndices| {
                choices.iter().map(move |member| {
                    let mut action = action;
                    // At most 64 members.
                    action[head as usize] = member as u8;
                    action
                })
            };
            branch = branch.into_iter().flat_map(with).collect();
        }
        actions.extend(branch);
    }
    actions.iter().map(command_of).collect()
}

#[cfg(test)]
mod tests;
