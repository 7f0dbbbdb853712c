//! The networks that a run keeps, taken out of their envs at the end of a round as values and, in a recorded run, as files.
//!
//! `run.keep` selects them. `Work::KeepNetworks` comes after every measurement of an episode and before its seeds
//! are removed. A network is measured when it is taken out, so its accuracy and its seeds' worth are those of the kept weights.
//! The best network and those of the last round are available as values when the run is over. The folder `networks` of a run
//! directory has all kept networks.

mod capture;
mod shelf;
mod test_part;

use std::cmp::Ordering;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;

pub use shelf::{KeptFile, NetworkShelf};
pub use test_part::TestPart;

use crate::env::round_is_complete;
use crate::health::{Failure, InEnv};
use crate::network::GrownNetwork;
use crate::record::RunDirectory;
use crate::run::StopSignal;
use crate::scenario::Keep;
use crate::schedule::{AddWork, RoundEnd, Shutdown, Work};
use capture::{EndedNetwork, KeepContext, Surroundings};

/// Most bytes that the networks of a run take on disk: enough for every network of all shipped scenarios, and no full disk
/// by the thousandth round of `keep: all`.
const MOST_BYTES: u64 = 1 << 30;

/// Keeps networks.
pub struct KeepPlugin;

impl Plugin for KeepPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<KeptNetworks>()
            .add_work(Shutdown, Work::KeepNetworks, write_unsaved)
            .add_unordered_work(RoundEnd, Work::KeepNetworks, keep_networks, round_is_complete);
    }
}

/// The networks of a run as values.
#[derive(Resource, Clone, Debug, Default, PartialEq)]
pub struct KeptNetworks {
    /// The kept network with the highest validation accuracy. Of equals, the smallest, then the first.
    pub best: Option<GrownNetwork>,
    /// The networks of the last round, by env.
    pub last: Vec<GrownNetwork>,
    /// The reason why a network that should be kept isn't on disk. `None` if all are.
    pub failure: Option<String>,
    /// The networks that aren't on disk. The run tries again after every round, and at the end.
    unsaved: Vec<GrownNetwork>,
}

/// Takes out the networks to be kept, the best of the round first.
pub(crate) fn keep_networks(
    mut envs: Query<EndedNetwork>,
    mut kept: ResMut<KeptNetworks>,
    stop: Res<StopSignal>,
    context: KeepContext,
) {
    let keep = context.experiment.scenario.run.keep;
    let is_last = context.clock.upcoming_round().is_none() || stop.is_requested();
    let whole_round = match keep {
        Keep::None => return,
        Keep::All => true,
        Keep::Best | Keep::Last => is_last,
    };
    if keep == Keep::Last && !is_last {
        return;
    }
    let surroundings = Surroundings::new(&context);
    let taken = surroundings.and_then(|surroundings| take_out(&mut envs, whole_round, &surroundings));
    let mut networks = match taken {
        Ok(networks) => networks,
        Err(error) => return kept.note(&error),
    };
    for network in &networks {
        if kept.best.as_ref().is_none_or(|best| network.is_better_than(best)) {
            kept.best = Some(network.clone());
        }
    }
    if let Some(directory) = &context.directory {
        kept.unsaved.extend(networks.iter().cloned());
        kept.write(directory);
    }
    if is_last {
        networks.sort_unstable_by_key(|network| network.origin.env);
        kept.last = networks;
    }
}

/// The networks of a round's episodes, the best first, or only the best.
fn take_out(
    envs: &mut Query<EndedNetwork>,
    whole_round: bool,
    surroundings: &Surroundings,
) -> Result<Vec<GrownNetwork>, Failure> {
    let mut ended: Vec<_> = envs.iter_mut().filter_map(|env| Some((env.rank()?, env))).collect();
    ended.sort_by(|(one, _), (other, _)| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    if !whole_round {
        ended.truncate(1);
    }
    let taken = ended.into_iter().map(|(_, mut env)| {
        let index = env.index();
        surroundings.capture(&mut env).in_env(index)
    });
    taken.collect()
}

/// However the run ends, what could not be written is tried once more.
pub(crate) fn write_unsaved(mut kept: ResMut<KeptNetworks>, directory: Option<Res<RunDirectory>>) {
    if let Some(directory) = directory {
        kept.write(&directory);
    }
}

impl KeptNetworks {
    fn write(&mut self, directory: &RunDirectory) {
        let shelf = NetworkShelf::of(directory.path());
        self.failure = None;
        while let Some(network) = self.unsaved.first() {
            if let Err(error) = shelf.put(network, MOST_BYTES, self.best.as_ref()) {
                return self.note(&error);
            }
            self.unsaved.remove(0);
        }
    }

    fn note(&mut self, error: &dyn std::fmt::Display) {
        tracing::warn!(%error, "networks of this round could not be kept");
        self.failure = Some(error.to_string());
    }
}
