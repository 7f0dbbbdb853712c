//! The controller that plays a fixed list of commands (spec 03 §10).

use std::collections::BTreeMap;
use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::{BuildContext, Controller, Decision, DecisionPoint, DecisionView, MaskSet, PolicyError, indices_of};
use crate::growth::{AlphaTarget, GerminationStyle, LifecycleCommand, Tempo};
use crate::scenario::{BuiltinSchedule, ScheduledCommand};

/// Orders each command of the list at its step, and waits otherwise.
#[derive(Clone, Debug)]
pub struct ScheduleController {
    commands: BTreeMap<u32, LifecycleCommand>,
    list: CommandList,
    hash: String,
}

impl ScheduleController {
    /// Reads `policy.schedule`.
    ///
    /// # Errors
    /// Both or neither of a built-in and entries, steps that do not increase or lie outside the
    /// episode, or a name that the host lacks.
    pub fn new(context: &BuildContext) -> Result<Self, PolicyError> {
        let config = &context.policy.schedule;
        let path = "policy.schedule";
        let commands = match (config.builtin, config.entries.is_empty()) {
            (Some(schedule), true) => builtin(schedule, context)?,
            (None, false) => config
                .entries
                .iter()
                .enumerate()
                .map(|(index, entry)| {
                    let path = format!("{path}.entries[{index}].command");
                    Ok((entry.step, resolve(&entry.command, &path, context)?))
                })
                .collect::<Result<_, PolicyError>>()?,
            (Some(_), false) => {
                return Err(PolicyError::config(
                    path,
                    "names a built-in schedule and lists entries; give one of the two",
                ));
            }
            (None, true) => {
                let names: Vec<&str> = BuiltinSchedule::ALL.iter().map(|builtin| builtin.name()).collect();
                let why = format!("is empty; list entries or name one of {}", names.join(", "));
                return Err(PolicyError::config(path, why));
            }
        };
        check_steps(&commands, context.max_steps)?;
        let allowed = context.allowed_actions()?;
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

/// Commands that were written down before the run, and what happens to one that is not legal when its step has come.
#[derive(Clone, Debug)]
pub(super) struct CommandList {
    /// In error messages.
    pub name: &'static str,
    /// In reasons: what its commands are.
    pub verb: &'static str,
    pub wait_on_illegal: bool,
    /// A wait in place of a command is told once.
    pub has_waited: bool,
}

impl CommandList {
    pub fn new(name: &'static str, verb: &'static str, wait_on_illegal: bool) -> Self {
        Self {
            name,
            verb,
            wait_on_illegal,
            has_waited: false,
        }
    }

    /// # Errors
    /// `ScheduleIllegal`, unless illegal commands become waits.
    pub fn decide(
        &mut self,
        command: LifecycleCommand,
        masks: &MaskSet,
        at: DecisionPoint,
    ) -> Result<Decision, PolicyError> {
        let (verb, op) = (self.verb, command.op());
        match masks.objection(&command) {
            None => Ok(Decision::new(command, masks, verb)),
            Some(why) if self.wait_on_illegal => {
                if !std::mem::replace(&mut self.has_waited, true) {
                    let list = self.name;
                    tracing::warn!(
                        "{at}: the {list} orders {op}, which is not legal: {why}; waits instead, here and wherever else"
                    );
                }
                let reason = format!("{verb} {op} is not legal: {why}");
                Ok(Decision::new(LifecycleCommand::Wait, masks, reason))
            }
            Some(why) => Err(PolicyError::ScheduleIllegal {
                at,
                list: self.name,
                op,
                why,
            }),
        }
    }
}

/// SHA-256 of the schedule as compact JSON, in hexadecimal; its key names are frozen.
pub fn schedule_hash(commands: &[(u32, LifecycleCommand)]) -> String {
    let entries: Vec<String> = commands
        .iter()
        .map(|(step, command)| {
            let indices = indices_of(command, 0).map(|index| index.to_string());
            format!(r#"{{"action":[{}],"epoch":{step}}}"#, indices.join(","))
        })
        .collect();
    sha256(&format!("[{}]", entries.join(",")))
}

/// In hexadecimal.
pub(super) fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            // Writing into a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

fn builtin(schedule: BuiltinSchedule, context: &BuildContext) -> Result<Vec<(u32, LifecycleCommand)>, PolicyError> {
    let germinate = LifecycleCommand::Germinate {
        slot: 0,
        blueprint: context.blueprint("policy.schedule.builtin", "norm")?,
        style: GerminationStyle::SigmoidAdd,
        tempo: Tempo::Standard,
        target: AlphaTarget::Full,
    };
    let mut commands = vec![(1, germinate)];
    if schedule == BuiltinSchedule::GrowOneSeed {
        commands.extend([2, 12, 17].map(|step| (step, LifecycleCommand::Advance { slot: 0 })));
        commands.push((18, LifecycleCommand::Fossilize { slot: 0 }));
    }
    Ok(commands)
}

fn check_steps(commands: &[(u32, LifecycleCommand)], max_steps: u32) -> Result<(), PolicyError> {
    let path = "policy.schedule";
    if !commands.is_sorted_by(|before, after| before.0 < after.0) {
        return Err(PolicyError::config(path, "steps have to increase strictly"));
    }
    match commands.iter().find(|(step, _)| !(1..=max_steps).contains(step)) {
        Some((step, _)) => Err(PolicyError::config(
            path,
            format!("orders something at step {step}; an episode has steps 1 to {max_steps}"),
        )),
        None => Ok(()),
    }
}

/// Turns names into indices.
fn resolve(command: &ScheduledCommand, path: &str, context: &BuildContext) -> Result<LifecycleCommand, PolicyError> {
    let slot = context.slot(&format!("{path}.slot"), command.slot())?;
    Ok(match *command {
        ScheduledCommand::Germinate {
            ref blueprint,
            style,
            tempo,
            target,
            ..
        } => LifecycleCommand::Germinate {
            slot,
            blueprint: context.blueprint(&format!("{path}.blueprint"), blueprint)?,
            style,
            tempo,
            target,
        },
        ScheduledCommand::SetAlphaTarget {
            style,
            target,
            speed,
            curve,
            ..
        } => LifecycleCommand::SetAlphaTarget {
            slot,
            style,
            target,
            speed,
            curve,
        },
        ScheduledCommand::Prune { speed, curve, .. } => LifecycleCommand::Prune { slot, speed, curve },
        ScheduledCommand::Fossilize { .. } => LifecycleCommand::Fossilize { slot },
        ScheduledCommand::Advance { .. } => LifecycleCommand::Advance { slot },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::fixtures::{Ground, Scene, empty, report};
    use crate::growth::{LifecycleOp, SeedStage};
    use crate::scenario::ScheduleEntry;

    fn builtin_named(schedule: BuiltinSchedule) -> Ground {
        let mut ground = Ground::default();
        ground.policy.schedule.builtin = Some(schedule);
        ground
    }

    fn listed(entries: &[(u32, ScheduledCommand)]) -> Ground {
        let mut ground = Ground::default();
        ground.policy.schedule.entries = entries
            .iter()
            .cloned()
            .map(|(step, command)| ScheduleEntry { step, command })
            .collect();
        ground
    }

    fn advance(slot: &str) -> ScheduledCommand {
        ScheduledCommand::Advance {
            slot: slot.parse().unwrap(),
        }
    }

    fn complaint(ground: &Ground) -> String {
        ScheduleController::new(&ground.context()).unwrap_err().to_string()
    }

    #[test]
    fn the_hashes_of_the_built_in_schedules_are_pinned() {
        for (name, hash) in [
            (
                BuiltinSchedule::GerminateFirstSlot,
                "e816388d3566fb7fd2a213cd4e44610aecb791e3e3afe498048920f49a03e797",
            ),
            (
                BuiltinSchedule::GrowOneSeed,
                "ec5bbce4686177b486454a3a87b43a45c0724e790028ea66eda9c2078f838f3c",
            ),
        ] {
            let schedule = ScheduleController::new(&builtin_named(name).context()).unwrap();
            assert_eq!(schedule.fingerprint(), Some(hash));
        }
    }

    #[test]
    fn a_command_outside_the_action_space_is_found_before_the_run() {
        let mut ground = builtin_named(BuiltinSchedule::GrowOneSeed);
        ground.policy.masks.action_space.allowed_ops = Some(vec![LifecycleOp::Wait, LifecycleOp::Germinate]);
        assert_eq!(
            complaint(&ground),
            "`policy.schedule`: step 2 orders ADVANCE, which policy.masks.action_space excludes"
        );
    }

    #[test]
    fn growing_one_seed_is_legal_at_each_of_its_steps() {
        let ground = builtin_named(BuiltinSchedule::GrowOneSeed);
        let mut schedule = ScheduleController::new(&ground.context()).unwrap();
        let mut order = |step, seed| Scene::new(step, vec![seed, None]).decide(&mut schedule);
        assert_eq!(
            order(1, None).command,
            LifecycleCommand::Germinate {
                slot: 0,
                blueprint: 3,
                style: GerminationStyle::SigmoidAdd,
                tempo: Tempo::Standard,
                target: AlphaTarget::Full,
            }
        );
        for (step, stage) in [
            (2, SeedStage::Germinated),
            (12, SeedStage::Training),
            (17, SeedStage::Blending),
        ] {
            let command = order(step, Some(report(0, stage))).command;
            assert_eq!(command, LifecycleCommand::Advance { slot: 0 });
        }
        let mut held = report(0, SeedStage::Holding);
        held.contribution = Some(0.4);
        assert_eq!(
            order(18, Some(held.clone())).command,
            LifecycleCommand::Fossilize { slot: 0 }
        );
        assert_eq!(order(19, Some(held)).command, LifecycleCommand::Wait);
    }

    #[test]
    fn an_illegal_entry_is_an_error_or_a_wait() {
        let mut ground = listed(&[(5, advance("r0c1"))]);
        let scene = Scene::new(5, empty(3));
        let mut strict = ScheduleController::new(&ground.context()).unwrap();
        assert_eq!(
            scene.try_decide(&mut strict).unwrap_err().to_string(),
            "env 0, episode 0, step 5: the schedule orders ADVANCE, which is not legal: the slot is empty"
        );
        ground.policy.schedule.wait_on_illegal = true;
        let mut lenient = ScheduleController::new(&ground.context()).unwrap();
        let decision = scene.decide(&mut lenient);
        assert_eq!(decision.command.op(), LifecycleOp::Wait);
        assert_eq!(decision.reason, "scheduled ADVANCE is not legal: the slot is empty");
    }

    #[test]
    fn mistakes_are_found_before_the_run() {
        assert_eq!(
            complaint(&Ground::default()),
            "`policy.schedule`: is empty; list entries or name one of germinate_first_slot, grow_one_seed"
        );
        assert_eq!(
            complaint(&listed(&[(4, advance("r0c0")), (4, advance("r0c0"))])),
            "`policy.schedule`: steps have to increase strictly"
        );
        assert_eq!(
            complaint(&listed(&[(151, advance("r0c0"))])),
            "`policy.schedule`: orders something at step 151; an episode has steps 1 to 150"
        );
        assert_eq!(
            complaint(&listed(&[(1, advance("r9c9"))])),
            "`policy.schedule.entries[0].command.slot`: slot `r9c9` is not enabled; enabled are r0c0, r0c1, r0c2"
        );
        let mut short = builtin_named(BuiltinSchedule::GrowOneSeed);
        short.max_steps = 17;
        assert_eq!(
            complaint(&short),
            "`policy.schedule`: orders something at step 18; an episode has steps 1 to 17"
        );
    }
}
