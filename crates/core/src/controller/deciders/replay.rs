//! The controller that decides as a recorded run did: env by env, round by round, step by step.
//!
//! With the scenario and the seed of that run it plays the same run again. With others it shows the effect of the same decisions
//! elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::command_list::CommandList;
use super::context::BuildContext;
use super::controller::Controller;
use crate::actions::{Decision, Head, HeadIndices, MaskSet, PolicyError, command_of, indices_of, relevant};
use crate::controller::view::{DecisionView, EnvView};
use crate::files::counted;
use crate::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleCommand, Tempo};
use crate::hash::sha256;
use crate::telemetry::{self, Event, Payload, RunStarted, finished_episode, read_recording};

const PATH: &str = "policy.replay";
/// Largest number of problems of a recording that are listed.
const LISTED: usize = 8;

/// Round, env and step of a decision.
type StepId = (u32, u32, u32);

/// Repeats the decisions of a recorded run.
#[derive(Clone, Debug)]
pub struct ReplayController {
    commands: BTreeMap<StepId, LifecycleCommand>,
    list: CommandList,
    hash: String,
}

impl ReplayController {
    /// Reads the run that `policy.replay` names.
    ///
    /// # Errors
    /// If there is no recorded run, or it recorded no decisions, or fewer rounds, envs or steps than this run plays, or it uses
    /// slots and blueprints that this host doesn't have. All problems are reported at once.
    pub fn new(context: &BuildContext) -> Result<Self, PolicyError> {
        let config = &context.scenario.policy.replay;
        let run = config
            .run
            .as_deref()
            .ok_or_else(|| PolicyError::config(format!("{PATH}.run"), "is empty; give the folder of a recorded run"))?;
        let folder = context.path(run);
        let mut recorded = Recorded::default();
        let started = read_recording(&folder, |event| recorded.take(event, context))
            .map_err(|error| PolicyError::config(format!("{PATH}.run"), error.to_string()))?;
        let mut problems: Vec<String> = recorded.foreign.iter().cloned().collect();
        problems.extend(recorded.too_short(&started, context));
        if problems.is_empty() {
            problems.extend(recorded.gap(context));
        }
        if !problems.is_empty() {
            let rest = problems.len().saturating_sub(LISTED);
            problems.truncate(LISTED);
            if rest > 0 {
                problems.push(format!("and {rest} more"));
            }
            let why = format!(
                "{} cannot be replayed here:\n  {}",
                folder.display(),
                problems.join("\n  ")
            );
            return Err(PolicyError::config(PATH, why));
        }
        Ok(Self {
            hash: fingerprint(&recorded.commands),
            commands: recorded.commands,
            list: CommandList::new("replay", "replayed", config.wait_on_illegal),
        })
    }
}

impl Controller for ReplayController {
    fn name(&self) -> &str {
        "replay"
    }

    fn fingerprint(&self) -> Option<&str> {
        Some(&self.hash)
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let decide = |(env, masks): (&EnvView, &MaskSet)| {
            let moment = (view.round, u32::try_from(env.row.env).unwrap_or(u32::MAX), view.step);
            match self.commands.get(&moment) {
                Some(&command) => self.list.decide(command, masks, view.point(env.row)),
                // The recorded env was rolled back in this step, or its episode was over.
                None => Ok(Decision::new(LifecycleCommand::Wait, masks, "nothing was decided then")),
            }
        };
        view.envs.iter().zip(masks).map(decide).collect()
    }
}

/// The part of a run's record that a replay needs.
#[derive(Default)]
struct Recorded {
    commands: BTreeMap<StepId, LifecycleCommand>,
    /// Reasons why this host cannot follow decisions of the run.
    foreign: BTreeSet<String>,
    /// Steps of the episodes that were played to their end, by round and env.
    lengths: BTreeMap<(u32, u32), u32>,
    rollbacks: BTreeSet<StepId>,
}

impl Recorded {
    fn take(&mut self, event: &Event, context: &BuildContext) {
        if let Some((episode, end)) = finished_episode(event) {
            self.lengths.insert(episode, end.length);
        }
        let (Some(round), Some(env), Some(step)) = (event.round, event.env, event.step) else {
            return;
        };
        let moment = (round, env, step);
        match &event.payload {
            Payload::Decision(decision) => match command(decision, context) {
                Ok(command) => _ = self.commands.insert(moment, command),
                Err(PolicyError::InvalidConfig { why, .. }) => _ = self.foreign.insert(why),
                Err(error) => _ = self.foreign.insert(error.to_string()),
            },
            Payload::GovernorRollback(_) => _ = self.rollbacks.insert(moment),
            _ => {}
        }
    }

    /// Reasons why the recorded run is too short for the current one.
    fn too_short(&self, started: &RunStarted, context: &BuildContext) -> Vec<String> {
        let mut problems = Vec::new();
        let envs = context.envs.iter().max().map_or(0, |last| last + 1);
        if envs > started.n_envs as usize {
            let had = counted(started.n_envs, "env");
            problems.push(format!("it had {had}, this run plays {envs}"));
        }
        if context.max_steps > started.max_steps {
            let (had, wanted) = (counted(started.max_steps, "step"), context.max_steps);
            problems.push(format!("its episodes had {had}, those of this run have {wanted}"));
        }
        let rounds = self.complete_rounds(started.n_envs);
        if context.rounds.end > rounds {
            let (rounds, wanted) = (counted(rounds, "round"), context.rounds.end);
            problems.push(format!("it completed {rounds}, this run plays {wanted}"));
        }
        problems
    }

    /// Rounds from the first on in which every env played its episode to the end.
    fn complete_rounds(&self, n_envs: u32) -> u32 {
        let mut envs: BTreeMap<u32, u32> = BTreeMap::new();
        for (round, _) in self.lengths.keys() {
            *envs.entry(*round).or_default() += 1;
        }
        let is_complete = |round: &u32| envs.get(round).is_some_and(|&count| count >= n_envs);
        u32::try_from((0..).take_while(is_complete).count()).unwrap_or(u32::MAX)
    }

    /// The first step to be played that has no recorded decision although its env took part in it.
    fn gap(&self, context: &BuildContext) -> Option<String> {
        if self.commands.is_empty() {
            return Some("it recorded no decisions".into());
        }
        let is_played = |&(&(round, env), _): &(&(u32, u32), _)| {
            context.rounds.contains(&round) && context.envs.contains(&(env as usize))
        };
        self.lengths
            .iter()
            .filter(is_played)
            .flat_map(|(&(round, env), &length)| {
                (1..=length.min(context.max_steps)).map(move |step| (round, env, step))
            })
            .find(|moment| !self.commands.contains_key(moment) && !self.rollbacks.contains(moment))
            .map(|(round, env, step)| {
                let round = round + 1;
                format!("it has no decision of env {env} in step {step} of round {round}")
            })
    }
}

/// Slots and blueprints by name become those of this host.
fn command(decision: &telemetry::Decision, context: &BuildContext) -> Result<LifecycleCommand, PolicyError> {
    let (op, choice) = (decision.op, &decision.choice);
    let target = choice.alpha_target.map(|target| target.0);
    let mut indices = HeadIndices::default();
    for head in Head::ALL.into_iter().filter(|&head| relevant(op, head)) {
        let member = match head {
            Head::Op => Some(op.code()),
            Head::Slot => decision.slot.map(|slot| context.slot(PATH, slot)).transpose()?,
            Head::Blueprint => {
                let name = choice.blueprint.as_deref();
                name.map(|name| context.blueprint(PATH, name)).transpose()?
            }
            Head::Style => choice.style.map(GerminationStyle::code),
            Head::Tempo => choice.tempo.map(Tempo::code),
            Head::AlphaTarget => AlphaTarget::ALL
                .iter()
                .position(|member| Some(member.value()) == target),
            Head::AlphaSpeed => choice.alpha_speed.map(AlphaSpeed::code),
            Head::AlphaCurve => choice.alpha_curve.map(AlphaCurveAction::code),
        };
        let member = member.and_then(|member| u8::try_from(member).ok());
        indices[head as usize] = member.ok_or_else(|| {
            let what = head.name().replace('_', " ");
            PolicyError::config(
                PATH,
                format!("a recorded {op} has a {what} that this version doesn't know"),
            )
        })?;
    }
    command_of(&indices)
}

/// SHA-256 of everything that is decided.
fn fingerprint(commands: &BTreeMap<StepId, LifecycleCommand>) -> String {
    let mut text = String::new();
    for ((round, env, step), command) in commands {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{round} {env} {step} {:?}", indices_of(command));
    }
    sha256(text.as_bytes())
}

#[cfg(test)]
mod tests;
