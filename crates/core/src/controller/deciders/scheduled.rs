//! The controller that plays a fixed list of commands.

use std::collections::BTreeMap;

use super::command_list::CommandList;
use super::context::BuildContext;
use super::controller::Controller;
use crate::actions::{Decision, MaskSet, PolicyError, indices_of};
use crate::controller::view::DecisionView;
use crate::growth::{LifecycleCommand, LifecycleOp, SlotId};
use crate::hash::sha256;
use crate::scenario::ScheduledCommand;

/// Orders each command of the list at its step, and waits otherwise.
#[derive(Clone, Debug)]
pub struct ScheduleController {
    commands: BTreeMap<u32, LifecycleCommand>,
    list: CommandList,
    hash: String,
}

impl ScheduleController {
    /// Reads `policy.schedule`. Where gates are automatic, the list's `advance` commands are left out.
    ///
    /// # Errors
    /// If there are no entries, or one has a name that the host doesn't have or a command that the action space excludes.
    pub fn new(context: &BuildContext) -> Result<Self, PolicyError> {
        let config = &context.scenario.policy.schedule;
        let path = "policy.schedule";
        let resolved = config.entries.iter().enumerate().map(|(index, entry)| {
            let path = format!("{path}.entries[{index}].command");
            Ok((entry.step, resolve(&entry.command, &path, context)?))
        });
        let mut commands = resolved.collect::<Result<Vec<_>, PolicyError>>()?;
        if commands.is_empty() {
            return Err(PolicyError::config(path, "is empty; list entries"));
        }
        // Automatic gates advance without a command.
        if context.scenario.lifecycle.auto_forward {
            commands.retain(|(_, command)| command.op() != LifecycleOp::Advance);
        }
        let allowed = context.allowed_actions();
        if let Some((step, command)) = commands.iter().find(|(_, command)| !allowed.allows(command)) {
            let why = format!(
                "step {step} orders {}, which policy.masks.action_space excludes",
                command.op()
            );
            return Err(PolicyError::config(path, why));
        }
        Ok(Self {
            hash: schedule_hash(&commands),
            commands: commands.into_iter().collect(),
            list: CommandList::new("schedule", "scheduled", config.wait_on_illegal),
        })
    }
}

impl Controller for ScheduleController {
    fn name(&self) -> &str {
        "schedule"
    }

    fn fingerprint(&self) -> Option<&str> {
        Some(&self.hash)
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let Some(&command) = self.commands.get(&view.step) else {
            let wait = |masks| Decision::new(LifecycleCommand::Wait, masks, "nothing scheduled");
            return Ok(masks.iter().map(wait).collect());
        };
        view.envs
            .iter()
            .zip(masks)
            .map(|(env, masks)| self.list.decide(command, masks, view.point(env.row)))
            .collect()
    }
}

/// SHA-256 of the schedule as compact JSON, in hexadecimal. Its key names are frozen.
pub fn schedule_hash(commands: &[(u32, LifecycleCommand)]) -> String {
    let entries: Vec<String> = commands
        .iter()
        .map(|(step, command)| {
            let indices = indices_of(command).map(|index| index.to_string());
            format!(r#"{{"action":[{}],"epoch":{step}}}"#, indices.join(","))
        })
        .collect();
    sha256(format!("[{}]", entries.join(",")).as_bytes())
}

/// The same command with slot and blueprint in other types. `$rest` are the other commands.
macro_rules! translated {
    ($command:expr, $from:ident => $to:ident, $slot:expr, |$name:ident| $blueprint:expr $(, $rest:pat => $none:expr)?) => {
        match *$command {
            $from::Germinate { blueprint: ref $name, style, tempo, target, .. } => {
                $to::Germinate { slot: $slot, blueprint: $blueprint, style, tempo, target }
            }
            $from::SetAlphaTarget { style, target, speed, curve, .. } => {
                $to::SetAlphaTarget { slot: $slot, style, target, speed, curve }
            }
            $from::Prune { speed, curve, .. } => $to::Prune { slot: $slot, speed, curve },
            $from::Commit { .. } => $to::Commit { slot: $slot },
            $from::Advance { .. } => $to::Advance { slot: $slot },
            $($rest => $none,)?
        }
    };
}

/// Turns names into indices.
fn resolve(command: &ScheduledCommand, path: &str, context: &BuildContext) -> Result<LifecycleCommand, PolicyError> {
    let slot = context.slot(&format!("{path}.slot"), command.slot())?;
    let blueprint = |name: &str| context.blueprint(&format!("{path}.blueprint"), name);
    Ok(translated!(command, ScheduledCommand => LifecycleCommand, slot, |name| blueprint(name)?))
}

/// Turns indices into names: a command as a schedule lists it. `None` for a wait, and for a slot that isn't in `slots`.
pub fn written<'a>(
    command: &LifecycleCommand,
    slots: &[SlotId],
    blueprint: impl Fn(usize) -> &'a str,
) -> Option<ScheduledCommand> {
    let slot = *slots.get(command.slot()?)?;
    Some(translated!(
        command,
        LifecycleCommand => ScheduledCommand,
        slot,
        |index| blueprint(*index).into(),
        LifecycleCommand::Wait => return None
    ))
}

#[cfg(test)]
mod tests;
