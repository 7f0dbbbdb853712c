//! Which networks a run keeps: taken out of their envs at the end of a round, as values and, of a recorded run, as files.
//!
//! `run.keep` says which. `Work::KeepNetworks` comes behind everything that is measured of an episode and before its seeds
//! go. The best network and those of the last round are there as values when the run is over; the folder `networks` of a run
//! directory has all that are kept.

mod capture;
mod shelf;
mod test_part;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;

pub use shelf::{KeptFile, NetworkShelf};
pub use test_part::TestPart;

use crate::clock::RunClock;
use crate::env::{Experiment, LoadedData, round_is_complete};
use crate::health::{Failure, InEnv};
use crate::network::{GrownNetwork, HostRegistry};
use crate::record::RunDirectory;
use crate::run::StopSignal;
use crate::scenario::Keep;
use crate::schedule::{AddWork, RoundEnd, Work};
use crate::seed::BlueprintRegistry;
use capture::{EndedNetwork, Rank, Surroundings};

/// Keeps networks.
pub struct KeepPlugin;

impl Plugin for KeepPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<KeptNetworks>()
            .add_work_if(RoundEnd, Work::KeepNetworks, keep_networks, round_is_complete);
    }
}

/// The networks of a run as values.
#[derive(Resource, Clone, Debug, Default, PartialEq)]
pub struct KeptNetworks {
    /// With the highest validation accuracy of all that were kept, of equals the smallest, then the first.
    pub best: Option<GrownNetwork>,
    /// Of the last round, by env.
    pub last: Vec<GrownNetwork>,
    /// Why a network that was to be kept is not on disk; `None` if all are.
    pub failure: Option<String>,
}

/// Takes out the networks that are to be kept; of several, the best of its round comes first.
pub(crate) fn keep_networks(
    mut envs: Query<EndedNetwork>,
    mut kept: ResMut<KeptNetworks>,
    (experiment, clock, stop): (Res<Experiment>, Res<RunClock>, Res<StopSignal>),
    (hosts, blueprints, data): (Res<HostRegistry>, Res<BlueprintRegistry>, Res<LoadedData>),
    directory: Option<Res<RunDirectory>>,
) -> Result<(), Failure> {
    let keep = experiment.scenario.run.keep;
    let is_last = clock.upcoming_round().is_none() || stop.is_requested();
    let whole_round = match keep {
        Keep::None => return Ok(()),
        Keep::All => true,
        Keep::Best | Keep::Last => is_last,
    };
    if keep == Keep::Last && !is_last {
        return Ok(());
    }
    let mut ended: Vec<_> = envs.iter_mut().filter_map(|env| Some((Rank::of(&env)?, env))).collect();
    ended.sort_unstable_by_key(|(rank, _)| *rank);
    if !whole_round {
        ended.truncate(1);
    }
    let surroundings = Surroundings::new(
        (&experiment, &clock),
        (&hosts, &blueprints),
        &data,
        directory.as_deref(),
    )?;
    let mut networks = Vec::with_capacity(ended.len());
    for (_, mut env) in ended {
        let index = env.index();
        networks.push(surroundings.capture(&mut env).in_env(index)?);
    }
    if let Some(directory) = directory {
        let shelf = NetworkShelf::of(directory.path());
        let limit = experiment.scenario.run.keep_limit_gib;
        let written = shelf.put_all(&networks, limit, kept.best.as_ref());
        kept.failure = written.err().map(|error| {
            tracing::warn!(%error, "networks of the round are not on disk");
            error.to_string()
        });
    }
    if let Some(first) = networks.first()
        && kept.best.as_ref().is_none_or(|best| first.is_better_than(best))
    {
        kept.best = Some(first.clone());
    }
    if is_last {
        networks.sort_unstable_by_key(|network| network.origin.env);
        kept.last = networks;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
