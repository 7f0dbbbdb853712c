//! Episodes that do not begin with an empty host: seeds are in their slots, committed, before the first step. Their
//! weights are fresh, so only the topology is carried over, and nothing that it has learnt.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;

use super::{EnvId, Experiment, GrowingEnv, GrowingEnvItem, GrowthContext, SeedOrder, SeedSlots};
use crate::growth::{AlphaAlgorithm, AlphaTarget, GerminationStyle, SeedStage, Tempo};
use crate::health::{Failure, InEnv};
use crate::scenario::{InitialSeed, InitialTopology};
use crate::seed::{BlueprintRegistry, germinate_committed};

/// Round and env of an episode.
type Episode = (u32, u32);

/// The seeds that every episode starts with. Present if the scenario asks for it.
#[derive(Resource, Clone, Debug, PartialEq, Eq)]
pub enum InitialSeeds {
    /// The same seeds in every episode.
    Same(Vec<SeedOrder>),
    /// Seeds by round and env. An episode that isn't listed starts with the host alone.
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

/// Turns `initial_topology` into seeds of this host, before anything is trained.
///
/// # Errors
/// None for a scenario that was found valid.
pub fn read_initial_topology(
    mut commands: Commands,
    experiment: Res<Experiment>,
    blueprints: Res<BlueprintRegistry>,
) -> Result<(), Failure> {
    let InitialTopology::Seeds(seeds) = &experiment.scenario.initial_topology else {
        return Ok(());
    };
    let orders = seeds.iter().map(|seed| {
        let InitialSeed { slot, blueprint, .. } = seed;
        let order = order(&experiment, &blueprints, seed);
        order.ok_or_else(|| Failure::message(format!("initial_topology: {blueprint} cannot grow in slot {slot}")))
    });
    let mut orders = orders.collect::<Result<Vec<_>, _>>()?;
    orders.sort_unstable_by_key(|order| order.slot);
    commands.insert_resource(InitialSeeds::Same(orders));
    Ok(())
}

fn order(experiment: &Experiment, blueprints: &BlueprintRegistry, seed: &InitialSeed) -> Option<SeedOrder> {
    let (blueprint, _) = blueprints.iter().find(|(_, recipe)| recipe.id() == seed.blueprint)?;
    Some(SeedOrder {
        slot: experiment.layout.index_of(seed.slot)?,
        blueprint,
        style: seed.style.unwrap_or(GerminationStyle::SigmoidAdd),
        tempo: Tempo::Standard,
        target: AlphaTarget::Full,
    })
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
    let guessed = 100.0 / growth.experiment.task.classes as f64;
    let germination = growth.germination(order, env, guessed)?;
    let plan = germinate_committed(germination, &growth.rules(&limits))?;
    growth.apply(plan, order.slot, env, false)
}
