//! Controllers that play to be measured: the loop of every run, in memory, without a learner. All of them get the same
//! hosts and the same order of data, because both derive from seed, round and env alone. Only decisions differ.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use serde::{Deserialize, Serialize};

use super::statistics::mean_of;
use crate::clock::RunClock;
use crate::controller::{ActiveController, SavedFolder};
use crate::engine::{Engine, Extension};
use crate::env::{
    Decisions, EnvId, EpisodeStats, Experiment, InitialSeeds, LoadedData, SeedOrder, round_is_complete, standing_seeds,
};
use crate::health::{EngineError, Failure, Position};
use crate::keep::KeptNetworks;
use crate::learner::LearnerPlugin;
use crate::policy::DecideMode;
use crate::reward::{EpisodeReward, RewardHorizon};
use crate::run::{DriverStep, StopSignal};
use crate::scenario::InitialTopology;
use crate::schedule::{AddWork, RoundEnd, Startup, Work};
use crate::telemetry::{BigInteger, EpisodeCompute};
use crate::validation::{MeasuredNetwork, TestResult};

/// The player that decides.
#[derive(Resource, Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Name under which the controller is registered.
    pub controller: String,
    /// A saved policy that it starts from.
    pub policy: Option<SavedFolder>,
    /// The way in which a learned policy chooses.
    pub mode: DecideMode,
    /// Seeds that episodes begin with, instead of the scenario's initial topology.
    pub seeds: Option<InitialSeeds>,
}

/// The episodes to play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episodes {
    /// Replaces `run.seed`.
    pub seed: u64,
    /// Rounds that are played.
    pub rounds: Range<u32>,
    /// Number of envs. They are the first ones of the scenario.
    pub envs: usize,
}

impl Episodes {
    /// At least `count` episodes, from round `first` on, in whole rounds of at most `envs` envs.
    pub fn at_least(count: u32, seed: u64, first: u32, envs: usize) -> Self {
        let envs = envs.min(count as usize).max(1);
        let rounds = count.div_ceil(u32::try_from(envs).unwrap_or(u32::MAX));
        Self {
            seed,
            rounds: first..first.saturating_add(rounds),
            envs,
        }
    }

    /// Number of episodes.
    pub fn count(&self) -> usize {
        self.rounds.len() * self.envs
    }
}

/// The end of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeOutcome {
    /// Seed of the run in which it was played.
    pub seed: BigInteger,
    /// Round, from 0.
    pub round: u32,
    /// Index in the run.
    pub env: usize,
    /// Accuracy of the network on the validation part at the end, percent. `None` if that was never measured.
    pub accuracy: Option<f64>,
    /// Accuracy on the validation part of the host with its committed seeds alone, percent.
    pub committed_accuracy: Option<f64>,
    /// Accuracy on the test part of the host with its committed seeds alone, percent.
    pub test_accuracy: Option<f64>,
    /// Nats a sample of the validation part, of the network at the end. `None` if it isn't finite, and in records of versions
    /// that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Loss on the test part of the host with its committed seeds alone, nats per sample. `None` as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_loss: Option<f64>,
    /// Mean cost of parameters and slots in a step, in points, by the same yardstick under every reward. `None` in records of
    /// versions that did not write it.
    pub rent: Option<f64>,
    /// Sum of the episode's rewards; 0 where nothing pays.
    pub reward: f64,
    /// Final size over the host's.
    pub param_ratio: f64,
    /// Rollbacks by the governor.
    pub rollbacks: u32,
    /// Compute of the episode; `None` in records of versions that did not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<EpisodeCompute>,
    /// The controller's decisions; `None` where they are not counted: in training, and in records of versions that did not
    /// count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Decisions>,
}

impl EpisodeOutcome {
    /// Value of the network: its accuracy less its rent, points.
    pub fn accuracy_minus_rent(&self) -> Option<f64> {
        Some(self.accuracy? - self.rent?)
    }

    /// The same with the rent that a scenario charges: J, accuracy less `price` for every time the host's size beyond itself.
    pub fn accuracy_minus_price(&self, price: f64) -> Option<f64> {
        Some(self.accuracy? - price * (self.param_ratio - 1.0))
    }

    /// Multiply-accumulates of training and validation, in billions.
    pub fn gmacs(&self) -> Option<f64> {
        Some(self.compute?.macs() as f64 / 1e9)
    }
}

/// The episodes that a candidate has played.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayedEpisodes {
    /// Outcomes by round, then by env.
    pub outcomes: Vec<EpisodeOutcome>,
    /// The seeds that stood in each network at the end, in the same order.
    pub standing: Vec<Vec<SeedOrder>>,
    /// Wall time of all of them together, which were played in parallel, without start-up.
    pub seconds: f64,
    /// [`TaskData::hash`](crate::data::TaskData::hash) of their data.
    pub data_hash: String,
    /// Networks that the scenario keeps.
    pub networks: KeptNetworks,
}

impl PlayedEpisodes {
    /// Mean over the episodes that have such a value. `None` without any.
    pub fn mean_of(&self, value: impl Fn(&EpisodeOutcome) -> Option<f64>) -> Option<f64> {
        mean_of(self.outcomes.iter().filter_map(value))
    }
}

/// Plays the episodes with one candidate, in the scenario's `experiment`, until a stop is requested. It then returns the episodes
/// of whole rounds. After every step of the envs it calls `stepped` with their world.
///
/// # Errors
/// A controller or policy that does not fit the scenario, or the first failure of a system. A failure before the first
/// round has no round in its position.
pub fn play_until(
    mut experiment: Experiment,
    extension: &Extension,
    candidate: &Candidate,
    episodes: &Episodes,
    stop: &StopSignal,
    mut stepped: impl FnMut(&mut World),
) -> Result<PlayedEpisodes, EngineError> {
    let scenario = &mut experiment.scenario;
    scenario.run.seed = episodes.seed;
    scenario.policy.controller.clone_from(&candidate.controller);
    scenario.policy.init_from = None;
    scenario.policy.teacher = None;
    scenario.faults.clear();
    if candidate.seeds.is_some() {
        scenario.initial_topology = InitialTopology::Empty;
    }
    scenario.run.run_early_stop = None;
    experiment.envs = (0..episodes.envs).collect();
    experiment.rounds = episodes.rounds.clone();
    let mut engine = Engine::builder()
        .with(extension.clone())
        .without::<LearnerPlugin>()
        .build_experiment(experiment)
        .map_err(|error| Failure::from(error).during("start-up", Position::default()))?;
    // This replaces the learner: the policy is fixed for all rounds, and every episode's outcome is noted.
    engine
        .app_mut()
        .insert_resource(candidate.clone())
        .insert_resource(stop.clone())
        .init_resource::<Outcomes>()
        .add_work(Startup, Work::BuildLearner, freeze_policy)
        .add_work_if(RoundEnd, Work::RecordEpisodes, note_outcomes, round_is_complete);
    let mut began = Instant::now();
    let networks = loop {
        match engine.advance() {
            ControlFlow::Continue(DriverStep::Started) => began = Instant::now(),
            ControlFlow::Continue(DriverStep::StepPlayed) => stepped(engine.world_mut()),
            ControlFlow::Continue(_) => {}
            ControlFlow::Break(report) => break report.into_result()?.networks,
        };
    };
    let seconds = began.elapsed().as_secs_f64();
    let mut played = std::mem::take(&mut engine.world_mut().resource_mut::<Outcomes>().0);
    played.sort_unstable_by_key(|(outcome, _)| (outcome.round, outcome.env));
    let (outcomes, standing) = played.into_iter().unzip();
    // A stop may come before the data are loaded.
    let data = engine.world().get_resource::<LoadedData>();
    let data_hash = data.map_or_else(String::new, |data| data.set.hash().into());
    Ok(PlayedEpisodes {
        outcomes,
        standing,
        seconds,
        data_hash,
        networks,
    })
}

/// Outcomes of the episodes that were played.
#[derive(Resource, Default)]
struct Outcomes(Vec<(EpisodeOutcome, Vec<SeedOrder>)>);

/// Loads the weights and turns exploration off: actions are as likely as the policy makes them.
fn freeze_policy(
    mut commands: Commands,
    mut controller: ResMut<ActiveController>,
    mut horizon: ResMut<RewardHorizon>,
    candidate: Res<Candidate>,
    experiment: Res<Experiment>,
) -> Result<(), Failure> {
    *horizon = RewardHorizon::from(&experiment.scenario.learner);
    let controller = controller.0.get();
    if let Some(policy) = &candidate.policy {
        controller.load(policy)?;
    }
    if let Some(policy) = controller.learned() {
        policy.set_mode(candidate.mode);
        policy.set_floor_scale(0.0);
    }
    if let Some(seeds) = &candidate.seeds {
        commands.insert_resource(seeds.clone());
    }
    Ok(())
}

/// Components that an episode's outcome is built from.
#[derive(QueryData)]
struct EndedEpisode {
    id: &'static EnvId,
    stats: &'static EpisodeStats,
    reward: &'static EpisodeReward,
    test: &'static TestResult,
    network: MeasuredNetwork,
}

fn note_outcomes(
    envs: Query<EndedEpisode>,
    mut outcomes: ResMut<Outcomes>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
) {
    for env in &envs {
        let shown = env.stats.last_val;
        let accuracy = shown.map(|shown| shown.accuracy_percent);
        let committed = |whole| env.network.committed_accuracy(whole);
        let outcome = EpisodeOutcome {
            seed: BigInteger(experiment.scenario.run.seed),
            round: clock.round(),
            env: env.id.index,
            accuracy,
            committed_accuracy: accuracy.and_then(committed),
            test_accuracy: env.test.0.map(|(accuracy, _)| accuracy),
            loss: shown.map(|shown| shown.loss).filter(|loss| loss.is_finite()),
            test_loss: env.test.0.map(|(_, loss)| loss).filter(|loss| loss.is_finite()),
            rent: Some(env.reward.mean_rent()),
            reward: env.reward.total(),
            param_ratio: env.network.growth().parameter_ratio(),
            rollbacks: env.stats.rollbacks,
            compute: Some(env.stats.compute),
            decisions: Some(env.stats.decisions.clone()),
        };
        outcomes.0.push((outcome, standing_seeds(env.network.slots)));
    }
}

#[cfg(test)]
mod tests;
