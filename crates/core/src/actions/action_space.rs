//! The action space that a scenario allows.
//!
//! The first modifier of every mask: members that it clears are offered to no controller, learned or not.

use bevy_ecs::resource::Resource;

use super::choices::Choices;
use super::commands::indices_of;
use super::heads::{Head, relevant};
use super::masks::{MaskRow, MaskSet};
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
    /// Builds the space from `space`, the section of a scenario that was found valid. `blueprints` are all names, by index.
    pub fn new(space: &ActionSpace, blueprints: &[&str]) -> Self {
        let index_of = |name: &String| blueprints.iter().position(|known| known.eq_ignore_ascii_case(name));
        Self {
            ops: allowed(&space.allowed_ops, LifecycleOp::ALL.len(), |op| op.code()),
            blueprints: match &space.blueprint {
                Some(names) => names.iter().filter_map(index_of).collect(),
                None => Choices::first_n(blueprints.len()),
            },
            parameters: [
                allowed(&space.style, GerminationStyle::ALL.len(), |style| style.code()),
                allowed(&space.tempo, Tempo::ALL.len(), |tempo| tempo.code()),
                allowed(&space.alpha_target, AlphaTarget::ALL.len(), |target| target.code()),
                allowed(&space.alpha_speed, AlphaSpeed::ALL.len(), |speed| speed.code()),
                allowed(&space.alpha_curve, AlphaCurveAction::ALL.len(), |curve| curve.code()),
            ],
        }
    }

    /// The allowed blueprints, whether this host can grow them or not.
    pub fn blueprints(&self) -> Choices {
        self.blueprints
    }

    /// Clears every member that isn't allowed.
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

    /// Returns whether all of a command's choices but its slot are allowed.
    pub fn allows(&self, command: &LifecycleCommand) -> bool {
        let indices = indices_of(command);
        Head::ALL
            .into_iter()
            .filter(|&head| relevant(command.op(), head))
            .all(|head| self.contains(head, indices[head as usize].into()))
    }

    /// `head:member` of every member that isn't allowed, in order. It is part of a saved policy's description.
    pub fn excluded(&self, blueprints: &[String]) -> Vec<String> {
        let mut excluded = Vec::new();
        for head in Head::ALL {
            let names = head.members(&[], blueprints).into_iter().enumerate();
            let missing = names.filter(|(member, _)| !self.contains(head, *member));
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

/// The members of a list, or all `size` of them if there is no list.
fn allowed<T>(list: &Option<Vec<T>>, size: usize, code: impl Fn(&T) -> usize) -> Choices {
    match list {
        Some(list) => list.iter().map(code).collect(),
        None => Choices::first_n(size),
    }
}

#[cfg(test)]
mod tests;
