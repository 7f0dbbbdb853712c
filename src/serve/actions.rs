//! Action space for clients: sizes and names of observations and actions. Actions are one number for each env, or one for each
//! head; and the masks for either.

use bevy_ecs::world::World;
use serde::Serialize;

use super::frame::VERSION;
use crate::actions::{
    AllowedActions, Choices, HEADS, Head, MaskSet, OPS, PolicyError, command_of, flat_commands, indices_of, relevant,
};
use crate::controller::{ObservationSchema, selectable};
use crate::env::Experiment;
use crate::growth::{LifecycleCommand, LifecycleOp};
use crate::seed::BlueprintRegistry;

/// The actions of a run in one of two forms.
#[derive(Serialize)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum Actions {
    /// A list of commands.
    Flat {
        names: Vec<String>,
        #[serde(skip)]
        commands: Vec<LifecycleCommand>,
    },
    /// Eight choices, of which the operation uses those that it needs.
    Factored { heads: Vec<HeadSpace> },
}

/// One of the choices of the factored form.
#[derive(Serialize)]
pub struct HeadSpace {
    name: &'static str,
    members: Vec<String>,
}

impl Actions {
    fn factored(members: [Vec<String>; HEADS]) -> Self {
        let heads = Head::ALL.into_iter().zip(members);
        let heads = heads.map(|(head, members)| HeadSpace {
            name: head.name(),
            members,
        });
        Self::Factored { heads: heads.collect() }
    }

    /// The shape of one env's action, and of its mask.
    pub fn shapes(&self) -> (Vec<usize>, Vec<usize>) {
        match self {
            Self::Flat { names, .. } => (Vec::new(), vec![names.len()]),
            Self::Factored { heads } => {
                let width = heads.iter().map(|head| head.members.len()).sum();
                (vec![HEADS], vec![OPS, width])
            }
        }
    }

    /// The command of an env's action.
    ///
    /// # Errors
    /// A number outside the space, in words.
    pub fn command(&self, action: &[i64]) -> Result<LifecycleCommand, String> {
        match self {
            Self::Flat { commands, .. } => {
                let index = action.first().copied().unwrap_or_default();
                let command = usize::try_from(index).ok().and_then(|index| commands.get(index));
                command
                    .copied()
                    .ok_or_else(|| format!("action {index} isn't one of the {} actions", commands.len()))
            }
            Self::Factored { heads } => {
                let mut indices = [0; HEADS];
                for ((index, &member), head) in indices.iter_mut().zip(action).zip(heads) {
                    let known = usize::try_from(member)
                        .ok()
                        .filter(|&member| member < head.members.len());
                    *index = known.and_then(|member| u8::try_from(member).ok()).ok_or_else(|| {
                        let (head, size) = (head.name, head.members.len());
                        format!("{head} {member} of action {action:?} isn't one of the head's {size} members")
                    })?;
                }
                command_of(&indices).map_err(|error| error.to_string())
            }
        }
    }

    /// The name of an action in messages: its numbers, and the words for them.
    pub fn describe(&self, action: &[i64], command: &LifecycleCommand) -> String {
        match (self, action) {
            (Self::Flat { names, .. }, &[index]) => {
                let name = usize::try_from(index).ok().and_then(|index| names.get(index));
                format!("action {index}, {}", name.map_or("", String::as_str))
            }
            _ => format!("action {action:?}, {}", command.op()),
        }
    }

    /// Appends an env's mask, 1 for what is legal; an env that takes no part in the step may only wait.
    pub fn mask(&self, masks: Option<&MaskSet>, cells: &mut Vec<u8>) {
        match self {
            Self::Flat { commands, .. } => {
                let is_legal = |command: &LifecycleCommand| {
                    masks.map_or(*command == LifecycleCommand::Wait, |masks| masks.allows(command))
                };
                cells.extend(commands.iter().map(|command| u8::from(is_legal(command))));
            }
            Self::Factored { heads } => {
                for op in LifecycleOp::ALL {
                    for (head, space) in Head::ALL.into_iter().zip(heads) {
                        let valid = valid(masks, op, head);
                        cells.extend((0..space.members.len()).map(|member| u8::from(valid.contains(member))));
                    }
                }
            }
        }
    }
}

/// The members of a head that are legal with an op. All slots of an op grow the same blueprints.
fn valid(masks: Option<&MaskSet>, op: LifecycleOp, head: Head) -> Choices {
    let is_legal = masks.map_or(op == LifecycleOp::Wait, |masks| masks.allows_op(op));
    match (masks, head) {
        _ if !is_legal => Choices::NONE,
        (_, Head::Op) => Choices::only(op.code()),
        (Some(masks), _) => {
            let slot = masks.slots_for(op).lowest().unwrap_or_default();
            masks.effective(head, op, slot)
        }
        (None, _) => Choices::only(head.placeholder()),
    }
}

/// The name of a command, such as `germinate(r0c0, conv_light, sigmoid_add, standard, full)`.
fn name(command: &LifecycleCommand, members: &[Vec<String>; HEADS]) -> String {
    let (op, indices) = (command.op(), indices_of(command));
    let choices = Head::ALL
        .into_iter()
        .filter(|&head| head != Head::Op && relevant(op, head));
    let choices: Vec<&str> = choices
        .filter_map(|head| members[head as usize].get(usize::from(indices[head as usize])))
        .map(String::as_str)
        .collect();
    let op = op.name().to_lowercase();
    match choices.is_empty() {
        true => op,
        false => format!("{op}({})", choices.join(", ")),
    }
}

/// The answer to `hello`.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "hello")]
pub struct Spaces {
    version: u32,
    program: &'static str,
    scenario: String,
    task: String,
    envs: usize,
    max_steps: u32,
    seed: u64,
    slots: Vec<String>,
    /// Names of the elements of an observation.
    observation: Vec<String>,
    pub actions: Actions,
}

impl Spaces {
    /// The answer of an engine that has started.
    ///
    /// # Errors
    /// None for a scenario that was found valid.
    pub fn of(world: &World, is_factored: bool) -> Result<Self, PolicyError> {
        let experiment = world.resource::<Experiment>();
        let (scenario, registry) = (&experiment.scenario, world.resource::<BlueprintRegistry>());
        let slots: Vec<String> = experiment
            .layout
            .slots()
            .iter()
            .map(|spec| spec.slot.to_string())
            .collect();
        let blueprints: Vec<String> = registry.names().map(str::to_owned).collect();
        let members = Head::ALL.map(|head| {
            let members = head.members(&slots, &blueprints).into_iter();
            members.map(str::to_lowercase).collect::<Vec<_>>()
        });
        let actions = match is_factored {
            true => Actions::factored(members),
            false => {
                let grown = selectable(registry) & world.resource::<AllowedActions>().blueprints();
                let commands = flat_commands(&scenario.policy.masks.action_space, slots.len(), grown)?;
                let names = commands.iter().map(|command| name(command, &members)).collect();
                Actions::Flat { names, commands }
            }
        };
        Ok(Self {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION"),
            scenario: scenario.name.clone(),
            task: experiment.task.name.clone(),
            envs: experiment.envs.len(),
            max_steps: experiment.task.max_steps,
            seed: scenario.run.seed,
            observation: world.resource::<ObservationSchema>().names().to_vec(),
            slots,
            actions,
        })
    }
}
