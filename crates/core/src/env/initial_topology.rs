//! Episodes that do not begin with an empty host: seeds are in their slots, committed, before the first step. Their
//! weights are fresh, so that a topology alone is carried over, and nothing it has learnt.

use std::collections::BTreeMap;
use std::path::Path;

use bevy_ecs::prelude::*;

use super::{EnvId, Experiment, GrowingEnv, GrowingEnvItem, GrowthContext, SeedOrder, SeedSlots};
use crate::growth::{AlphaAlgorithm, AlphaTarget, GerminationStyle, SeedStage, SlotId, Tempo};
use crate::health::{Failure, InEnv};
use crate::scenario::{EpisodeChoice, InitialSeed, InitialTopology};
use crate::seed::{BlueprintRegistry, GateNetwork, Germination, germinate_committed};
use crate::telemetry::{Event, Payload, RecordingError, finished_episode, read_recording};

/// Round and env of an episode.
type Episode = (u32, u32);

/// What every episode starts with; there if the scenario asks for it.
#[derive(Resource, Clone, Debug, PartialEq, Eq)]
pub enum InitialSeeds {
    /// The same seeds in every episode.
    Same(Vec<SeedOrder>),
    /// By round and env; an episode that is not listed starts with the host alone.
    Each(BTreeMap<Episode, Vec<SeedOrder>>),
}

impl InitialSeeds {
    /// In slot order.
    pub fn of(&self, round: u32, env: usize) -> &[SeedOrder] {
        match self {
            Self::Same(seeds) => seeds,
            Self::Each(episodes) => u32::try_from(env)
                .ok()
                .and_then(|env| episodes.get(&(round, env)))
                .map_or(&[], Vec::as_slice),
        }
    }
}

/// Why there is no topology to start with.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TopologyError {
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("the run {0} committed no seed in an episode that it finished; there is no topology to start with")]
    NothingCommitted(String),
    #[error("env {env} committed no seed in round {round} of the run {run}, counted from 0, or did not finish it")]
    NoSuchEpisode { run: String, round: u32, env: u32 },
    #[error("the run {run} finished no episode of env {env} in round {round}, counted from 0, which is to be played")]
    Unplayed { run: String, round: u32, env: u32 },
    #[error("slot {slot} is not enabled; enabled are {}", .enabled.join(", "))]
    NoSuchSlot { slot: String, enabled: Vec<String> },
    #[error("no slot of this host can grow `{0}`")]
    NoSuchBlueprint(String),
    #[error("{seeds} seeds to start with, but at most {most} may grow")]
    TooMany { seeds: usize, most: u32 },
}

/// Turns `initial_topology` into seeds of this host, or says why not, before anything is trained.
pub fn read_initial_topology(
    mut commands: Commands,
    experiment: Res<Experiment>,
    blueprints: Res<BlueprintRegistry>,
) -> Result<(), Failure> {
    let seeds = initial_seeds(&experiment, &blueprints).map_err(Failure::from)?;
    if let Some(seeds) = seeds {
        commands.insert_resource(seeds);
    }
    Ok(())
}

fn initial_seeds(
    experiment: &Experiment,
    blueprints: &BlueprintRegistry,
) -> Result<Option<InitialSeeds>, TopologyError> {
    let resolve = |seeds: &[InitialSeed]| resolve(seeds, experiment, blueprints);
    match &experiment.scenario.initial_topology {
        InitialTopology::Empty => Ok(None),
        InitialTopology::Seeds(listed) => Ok(Some(InitialSeeds::Same(resolve(listed)?))),
        InitialTopology::Run { path, episode } => {
            let folder = experiment.folder.as_deref().unwrap_or(Path::new("")).join(path);
            let grown = Grown::read(&folder)?;
            Ok(Some(match *episode {
                None => InitialSeeds::Same(resolve(grown.best()?)?),
                Some(EpisodeChoice::At { round, env }) => InitialSeeds::Same(resolve(grown.at((round, env))?)?),
                Some(EpisodeChoice::Each) => {
                    grown.covers(experiment)?;
                    let mut each = BTreeMap::new();
                    for (&episode, seeds) in &grown.committed {
                        each.insert(episode, resolve(seeds)?);
                    }
                    InitialSeeds::Each(each)
                }
            }))
        }
    }
}

/// Names become this host's slots and this build's blueprints.
fn resolve(
    seeds: &[InitialSeed],
    experiment: &Experiment,
    blueprints: &BlueprintRegistry,
) -> Result<Vec<SeedOrder>, TopologyError> {
    let most = experiment.task.max_seeds;
    if most > 0 && seeds.len() > most as usize {
        let seeds = seeds.len();
        return Err(TopologyError::TooMany { seeds, most });
    }
    let layout = &experiment.layout;
    let allow_parameterless = experiment.scenario.lifecycle.allow_parameterless_seeds;
    let mut orders = seeds
        .iter()
        .map(|seed| {
            let slot = layout.index_of(seed.slot).ok_or_else(|| TopologyError::NoSuchSlot {
                slot: seed.slot.to_string(),
                enabled: layout.slots().iter().map(|spec| spec.slot.to_string()).collect(),
            })?;
            let (blueprint, _) = blueprints
                .iter()
                .find(|(_, recipe)| recipe.id() == seed.blueprint && (allow_parameterless || recipe.param_count(1) > 0))
                .ok_or_else(|| TopologyError::NoSuchBlueprint(seed.blueprint.clone()))?;
            Ok(SeedOrder {
                slot,
                blueprint,
                style: seed.style.unwrap_or(GerminationStyle::SigmoidAdd),
                tempo: Tempo::Standard,
                target: AlphaTarget::Full,
            })
        })
        .collect::<Result<Vec<_>, TopologyError>>()?;
    orders.sort_unstable_by_key(|order| order.slot);
    Ok(orders)
}

/// What the episodes of a recorded run had committed in the end.
struct Grown {
    run: String,
    /// Accuracy in percent of the finished ones, with their committed seeds alone.
    finished: BTreeMap<Episode, f64>,
    /// Of the finished ones that had committed anything; a seed that still developed in the end is no part of it.
    committed: BTreeMap<Episode, Vec<InitialSeed>>,
}

impl Grown {
    fn read(folder: &Path) -> Result<Self, TopologyError> {
        let mut finished: BTreeMap<Episode, f64> = BTreeMap::new();
        let mut seeds = Commits::default();
        read_recording(folder, |event| {
            if let Some((episode, end)) = finished_episode(event) {
                finished.insert(episode, end.committed_accuracy.unwrap_or(end.final_accuracy).0);
            }
            seeds.take(event);
        })?;
        let mut committed = seeds.committed;
        committed.retain(|episode, _| finished.contains_key(episode));
        let run = folder.display().to_string();
        if committed.is_empty() {
            return Err(TopologyError::NothingCommitted(run));
        }
        Ok(Self {
            run,
            finished,
            committed,
        })
    }

    fn at(&self, (round, env): Episode) -> Result<&[InitialSeed], TopologyError> {
        let seeds = self
            .committed
            .get(&(round, env))
            .ok_or_else(|| TopologyError::NoSuchEpisode {
                run: self.run.clone(),
                round,
                env,
            })?;
        tracing::info!(
            "every episode starts with what env {env} of {} committed in round {round}, from 0",
            self.run
        );
        Ok(seeds)
    }

    /// The earliest of equals.
    fn best(&self) -> Result<&[InitialSeed], TopologyError> {
        let mut best: Option<(Episode, f64)> = None;
        for &episode in self.committed.keys() {
            let accuracy = self.finished[&episode];
            if !accuracy.is_nan() && best.is_none_or(|(_, highest)| accuracy > highest) {
                best = Some((episode, accuracy));
            }
        }
        let (episode, _) = best.ok_or_else(|| TopologyError::NothingCommitted(self.run.clone()))?;
        self.at(episode)
    }

    /// # Errors
    /// An episode is to be played that the run did not finish.
    fn covers(&self, experiment: &Experiment) -> Result<(), TopologyError> {
        for round in experiment.rounds.clone() {
            for &env in &experiment.envs {
                let env = u32::try_from(env).unwrap_or(u32::MAX);
                if !self.finished.contains_key(&(round, env)) {
                    let run = self.run.clone();
                    return Err(TopologyError::Unplayed { run, round, env });
                }
            }
        }
        Ok(())
    }
}

/// Which seeds were committed, from the events of a run.
#[derive(Default)]
struct Commits {
    growing: BTreeMap<(Episode, SlotId), InitialSeed>,
    /// By the episode that they were committed in.
    committed: BTreeMap<Episode, Vec<InitialSeed>>,
}

impl Commits {
    fn take(&mut self, event: &Event) {
        let (Some(round), Some(env), Some(slot)) = (event.round, event.env, event.slot) else {
            return;
        };
        let place = ((round, env), slot);
        match &event.payload {
            Payload::SeedGerminated(seed) => {
                let seed = InitialSeed {
                    slot,
                    blueprint: seed.blueprint.clone(),
                    style: Some(seed.style),
                };
                self.growing.insert(place, seed);
            }
            Payload::AlphaRampStarted(ramp) => {
                if let Some(seed) = self.growing.get_mut(&place) {
                    seed.style = seed.style.map(|style| style_with(ramp.operator_to, style));
                }
            }
            Payload::SeedCommitted(_) => {
                if let Some(seed) = self.growing.remove(&place) {
                    self.committed.entry((round, env)).or_default().push(seed);
                }
            }
            _ => {}
        }
    }
}

/// The seeds on the output path of the current network: committed, held or blending. An episode that begins with them has
/// the same architecture from its first step on.
pub fn standing_seeds(slots: &SeedSlots) -> Vec<SeedOrder> {
    let stands = |stage| matches!(stage, SeedStage::Committed | SeedStage::Holding | SeedStage::Blending);
    let records = slots.records().enumerate();
    records
        .filter_map(|(slot, record)| Some((slot, record.filter(|seed| stands(seed.stage))?)))
        .map(|(slot, seed)| SeedOrder {
            slot,
            blueprint: seed.identity.blueprint_index,
            style: style_with(seed.algorithm, seed.identity.style),
            tempo: Tempo::Standard,
            target: AlphaTarget::Full,
        })
        .collect()
}

/// `style`, unless the seed's operator was switched since.
fn style_with(operator: AlphaAlgorithm, style: GerminationStyle) -> GerminationStyle {
    if style.algorithm() == operator {
        return style;
    }
    let mut styles = GerminationStyle::ALL.iter().copied();
    styles.find(|style| style.algorithm() == operator).unwrap_or(style)
}

/// Inserts the seeds that the episode starts with. A fresh host guesses: that is the accuracy they start from.
pub fn apply_initial_topology(
    mut envs: Query<GrowingEnv>,
    mut growth: GrowthContext,
    initial: Option<Res<InitialSeeds>>,
) -> Result<(), Failure> {
    let Some(initial) = initial else {
        return Ok(());
    };
    for mut env in envs.iter_mut().sort_unstable::<&EnvId>() {
        let id = env.id.index;
        for &order in initial.of(growth.clock.round(), id) {
            insert_committed(order, &mut env, &mut growth).in_env(id)?;
        }
    }
    Ok(())
}

fn insert_committed(order: SeedOrder, env: &mut GrowingEnvItem, growth: &mut GrowthContext) -> Result<(), Failure> {
    let limits = growth.experiment.limits();
    let germination = Germination {
        identity: growth.identity(order, env)?,
        gate_params: GateNetwork::param_count(env.slots.0[order.slot].spec.channels),
        accuracy: 100.0 / growth.experiment.task.classes as f64,
    };
    let plan = germinate_committed(germination, &growth.rules(&limits))?;
    growth.apply(plan, order.slot, env, false)
}
