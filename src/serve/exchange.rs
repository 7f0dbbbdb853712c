//! One step from a client's view: the results of its last actions, the current observations, and its next actions.
//!
//! `note_outcomes` runs at the end of a step and keeps rewards and, after a round, the ends of its episodes.
//! `exchange` runs before the decision of the next one.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;
use serde::Serialize;

use super::actions::Actions;
use super::client::{Client, ClientError};
use super::frame::{ArrayHeader, Arrays, Request};
use crate::actions::{MaskSet, PolicyError};
use crate::clock::RunClock;
use crate::controller::{
    EnvRow, ExternalCommands, Feedback, Masks, Observation, ObservationInput, ObservationSchema, Signals,
    TrainingSignals,
};
use crate::engine::SetupError;
use crate::env::{EnvId, EpisodeStats, Experiment, StepStatus};
use crate::growth::LifecycleCommand;
use crate::health::{EngineError, RunHealth};
use crate::prelude::App;
use crate::reward::{EpisodeReward, EpisodeStatus, RewardHorizon, StepReward};
use crate::schedule::{Decide, EngineSet, StepEnd, Work};
use crate::seed::BlueprintRegistry;
use crate::telemetry::{EndReason, Num};
use crate::validation::{MeasuredNetwork, TestResult};

/// The client of the engine, and the results that it has not received yet.
#[derive(Resource)]
pub struct Served {
    client: Client,
    actions: Arc<Actions>,
    outcomes: Outcomes,
    /// The client's request in place of a step.
    pub next: Option<Result<Request, ServeError>>,
}

/// The reason why a client is not served to its end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Run(#[from] EngineError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("the engine stopped by itself")]
    Stopped,
}

/// Results of the last actions, as bytes of arrays; empty before the first.
#[derive(Default)]
struct Outcomes {
    rewards: Vec<u8>,
    /// Ends of the episodes, after a round.
    ends: Option<Ends>,
}

/// The ends of the episodes of a round.
#[derive(Default)]
struct Ends {
    observations: Vec<u8>,
    terminated: Vec<u8>,
    episodes: Vec<Episode>,
}

/// An episode that has ended.
#[derive(Serialize)]
struct Episode {
    #[serde(rename = "return")]
    total: f64,
    length: u32,
    end: EndReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    final_accuracy: Option<Num>,
    committed_accuracy: Option<Num>,
    best_accuracy: Num,
    test_accuracy: Option<Num>,
    params_ratio: f64,
    committed_ratio: f64,
    rollbacks: u32,
}

/// The answer to `reset` and `step`.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
struct Answer {
    kind: &'static str,
    /// Round of the decision that is due, from 0, and its step, from 1.
    round: u32,
    step: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    episodes: Option<Vec<Episode>>,
}

/// Components of an env that clients see.
#[derive(QueryData)]
pub struct ServedEnv {
    id: &'static EnvId,
    status: &'static StepStatus,
    signals: &'static Signals,
    feedback: &'static Feedback,
    observation: &'static Observation,
    masks: &'static Masks,
    network: MeasuredNetwork,
    stats: &'static EpisodeStats,
    reward: &'static StepReward,
    paid: &'static EpisodeReward,
    test: &'static TestResult,
}

impl ServedEnvItem<'_, '_> {
    fn masks(&self) -> Option<&MaskSet> {
        self.masks.0.as_ref().filter(|_| self.status.participates())
    }

    fn episode(&self) -> Episode {
        let growth = self.network.growth();
        let accuracy = self.stats.last_val.map(|val| val.accuracy_percent);
        let committed = |accuracy| self.network.committed_accuracy(accuracy);
        let end = self.stats.end.as_ref();
        Episode {
            total: self.paid.total(),
            length: end.map_or(0, |end| end.steps_played()),
            end: end.map_or(EndReason::Stopped, |end| end.reason),
            error: self.stats.error.clone(),
            final_accuracy: accuracy.map(Num),
            committed_accuracy: accuracy.and_then(committed).map(Num),
            best_accuracy: Num(self.stats.best_accuracy_percent),
            test_accuracy: self.test.0.map(|(accuracy, _)| Num(accuracy)),
            params_ratio: growth.parameter_ratio(),
            committed_ratio: growth.growth_ratio(),
            rollbacks: self.stats.rollbacks,
        }
    }
}

/// Resources for observing an env at any time, not only before its decision.
#[derive(SystemParam)]
pub struct Sight<'w> {
    schema: Res<'w, ObservationSchema>,
    blueprints: Res<'w, BlueprintRegistry>,
    experiment: Res<'w, Experiment>,
    clock: Res<'w, RunClock>,
}

impl Sight<'_> {
    /// The current state of the env, with the signals of its last measured step.
    fn look(&self, env: &ServedEnvItem) -> Result<Observation, PolicyError> {
        let reports = env
            .network
            .slots
            .reports(&self.blueprints, &self.experiment.scenario.lifecycle.gates);
        // Before its first measurement an env has the signals of its last episode.
        let unmeasured = TrainingSignals::default();
        let signals = match env.stats.last_val {
            Some(_) => &env.signals.0,
            None => &unmeasured,
        };
        let mut observation = Observation::default();
        let input = ObservationInput {
            at: EnvRow::of(env.id, &self.experiment, &self.clock).at(self.clock.step()),
            signals,
            feedback: env.feedback.0,
            reports: &reports,
        };
        self.schema.observe(&input, &mut observation)?;
        Ok(observation)
    }
}

impl Served {
    pub fn new(client: &Client, actions: &Arc<Actions>) -> Self {
        Self {
            client: client.clone(),
            actions: actions.clone(),
            outcomes: Outcomes::default(),
            next: None,
        }
    }
}

/// Adds the exchange to an engine; its systems need [`Served`].
pub fn add_exchange(app: &mut App) {
    let before_decision = exchange.in_set(EngineSet::Decide).before(Work::Decide).run_if(is_sound);
    app.add_systems(Decide, before_decision);
    app.add_systems(
        StepEnd,
        note_outcomes
            .in_set(EngineSet::Record)
            .after(Work::EvaluateTest)
            .run_if(is_sound),
    );
}

/// Checks that the step has not failed. After a failure the client gets only the error.
fn is_sound(health: Res<RunHealth>) -> bool {
    health.failure.is_none()
}

/// Keeps the results of the step until the client gets them.
fn note_outcomes(envs: Query<ServedEnv>, sight: Sight, horizon: Res<RewardHorizon>, mut served: ResMut<Served>) {
    let envs: Vec<_> = envs.iter().sort_unstable::<&EnvId>().collect();
    let paid = |env: &ServedEnvItem| env.reward.0.map_or(0.0, |reward| reward.total());
    served.outcomes.rewards = envs.iter().flat_map(|env| paid(env).to_le_bytes()).collect();
    if envs.iter().any(|env| env.stats.end.is_none()) {
        return;
    }
    let mut ends = Ends::default();
    for env in &envs {
        match sight.look(env) {
            Ok(seen) => ends.observations.extend(bytes(&seen.raw)),
            Err(error) => return served.next = Some(Err(error.into())),
        }
        let is_horizon = env.stats.end.is_some_and(|end| end.reason == EndReason::Horizon);
        let is_terminal = is_horizon && horizon.last_step == EpisodeStatus::Terminated;
        ends.terminated.push(is_terminal.into());
        ends.episodes.push(env.episode());
    }
    served.outcomes.ends = Some(ends);
}

/// Sends the client the observations, and waits for its actions.
fn exchange(envs: Query<ServedEnv>, sight: Sight, mut served: ResMut<Served>, commands: Res<ExternalCommands>) {
    let envs: Vec<_> = envs.iter().sort_unstable::<&EnvId>().collect();
    let served = &mut *served;
    if served.next.is_some() {
        return;
    }
    let answered = served.tell(&envs, &sight).and_then(|()| served.ask(&envs));
    match answered {
        Ok(ordered) => commands.order(envs.iter().map(|env| env.id.index).zip(ordered)),
        Err(error) => served.next = Some(Err(error)),
    }
}

impl Served {
    fn tell(&mut self, envs: &[ServedEnvItem], sight: &Sight) -> Result<(), ServeError> {
        let outcomes = std::mem::take(&mut self.outcomes);
        let is_first = outcomes.rewards.is_empty();
        let n = envs.len();
        let (mut observations, mut blueprints, mut mask, mut decides) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for env in envs {
            let decides_now = env.status.participates();
            let seen = if decides_now {
                env.observation
            } else {
                &sight.look(env)?
            };
            observations.extend(bytes(&seen.raw));
            blueprints.extend(seen.blueprints.iter().flat_map(|index| index.to_le_bytes()));
            self.actions.mask(env.masks(), &mut mask);
            decides.push(decides_now.into());
        }
        let mut arrays = Arrays::default();
        let (elements, slots) = (sight.schema.len(), sight.schema.slots().len());
        arrays.add("observations", "f32", &[n, elements], observations);
        arrays.add("blueprints", "i64", &[n, slots], blueprints);
        arrays.add("action_mask", "u8", &[vec![n], self.actions.shapes().1].concat(), mask);
        arrays.add("decides", "u8", &[n], decides);
        if !is_first {
            arrays.add("rewards", "f64", &[n], outcomes.rewards);
        }
        let episodes = outcomes.ends.map(|ends| {
            arrays.add("terminated", "u8", &[n], ends.terminated);
            arrays.add("final_observations", "f32", &[n, elements], ends.observations);
            ends.episodes
        });
        let answer = Answer {
            kind: if is_first { "reset" } else { "step" },
            round: sight.clock.round(),
            step: sight.clock.step(),
            episodes,
        };
        Ok(self.client.send(&answer, &arrays)?)
    }

    /// Waits for one legal action for each env. Returns none if the client asks for something else than a step. Illegal actions
    /// are refused, and none of them takes effect.
    fn ask(&mut self, envs: &[ServedEnvItem]) -> Result<Vec<LifecycleCommand>, ServeError> {
        loop {
            let refusal = match self.client.receive()? {
                (Request::Step { arrays }, bytes) => match self.commands(&arrays, &bytes, envs) {
                    Ok(commands) => return Ok(commands),
                    Err(why) => format!("{why}; nothing was done"),
                },
                (Request::Hello { .. }, _) => "hello may be sent only once, and was sent before".into(),
                (request, _) => {
                    self.next = Some(Ok(request));
                    return Ok(Vec::new());
                }
            };
            self.client.refuse(&refusal)?;
        }
    }

    fn commands(
        &self,
        arrays: &[ArrayHeader],
        bytes: &[u8],
        envs: &[ServedEnvItem],
    ) -> Result<Vec<LifecycleCommand>, String> {
        let shape = [vec![envs.len()], self.actions.shapes().0].concat();
        let is_asked_for = |array: &ArrayHeader| {
            (array.name.as_str(), array.dtype.as_str(), &array.shape) == ("actions", "i64", &shape)
        };
        let (words, rest) = bytes.as_chunks::<8>();
        let count: usize = shape.iter().product();
        if !matches!(arrays, [array] if is_asked_for(array)) || words.len() != count || !rest.is_empty() {
            return Err(format!(
                "a step takes one array: actions, i64, {shape:?}, {} bytes; this frame has {arrays:?} in {} bytes",
                count * 8,
                bytes.len()
            ));
        }
        let actions: Vec<i64> = words.iter().map(|&word| i64::from_le_bytes(word)).collect();
        let actions = actions.chunks(count / envs.len().max(1));
        envs.iter()
            .zip(actions)
            .map(|(env, action)| self.command(env, action))
            .collect()
    }

    fn command(&self, env: &ServedEnvItem, action: &[i64]) -> Result<LifecycleCommand, String> {
        let index = env.id.index;
        let command = self
            .actions
            .command(action)
            .map_err(|why| format!("env {index}: {why}"))?;
        let objection = match (env.masks(), env.status) {
            (Some(masks), _) => masks.objection(&command),
            (None, _) if command == LifecycleCommand::Wait => None,
            (None, StepStatus::RolledBack) => Some("the env was rolled back in this step, and may only wait".into()),
            (None, _) => Some("its episode is over, and it waits for the others".into()),
        };
        let what = || self.actions.describe(action, &command);
        objection.map_or(Ok(command), |why| {
            Err(format!("env {index}: {}, is masked: {why}", what()))
        })
    }
}

fn bytes(row: &[f32]) -> impl Iterator<Item = u8> {
    row.iter().flat_map(|value| value.to_le_bytes())
}
