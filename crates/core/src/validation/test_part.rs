//! The committed network at the end of an episode, on the test part, which nothing else reads.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use serde::{Deserialize, Serialize};

use super::committed::{CommittedNetwork, Tools};
use crate::clock::RunClock;
use crate::data::Batch;
use crate::env::{Devices, EnvBackend, EnvId, EnvStream, EpisodeStats, Experiment, HostModel, LoadedData, SeedSlots};
use crate::health::{Failure, InEnv};
use crate::telemetry::{EndReason, Phase, PhaseClock};

/// Accuracy (percent) and loss (nats) of the host with its committed seeds alone; `None` until the episode ends, and
/// where the task has no test part.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestResult(pub Option<(f64, f64)>);

#[derive(QueryData)]
#[query_data(mutable)]
pub struct TestedEnv {
    id: &'static EnvId,
    stats: &'static mut EpisodeStats,
    backend: &'static EnvBackend,
    stream: &'static mut EnvStream,
    host: &'static mut HostModel,
    slots: &'static mut SeedSlots,
    result: &'static mut TestResult,
}

/// Evaluates every env at the last step of its episode; one read per env and episode.
pub fn evaluate_test(
    mut envs: Query<TestedEnv>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    devices: Res<Devices>,
    mut data: ResMut<LoadedData>,
    tools: Tools,
    mut phases: ResMut<PhaseClock>,
) -> Result<(), Failure> {
    phases.enter(Phase::Validate);
    for mut env in &mut envs {
        let end = env.stats.end.filter(|end| end.reason != EndReason::Failed);
        if end.is_some_and(|end| end.step != clock.step()) {
            continue;
        }
        env.result.0 = None;
        let set = data.resident.get()[devices.index_of_env(env.id.index)].test();
        if end.is_none() || set.is_empty() {
            continue;
        }
        let batches = set.batches(experiment.task.batch_size, usize::MAX);
        env.result.0 = Some(test(&mut env, &batches, &experiment, &tools).in_env(env.id.index)?);
    }
    phases.enter(Phase::Record);
    Ok(())
}

fn test(
    env: &mut TestedEnvItem,
    batches: &[Batch],
    experiment: &Experiment,
    tools: &Tools,
) -> Result<(f64, f64), Failure> {
    let _guard = env.stream.0.get().enter()?;
    let isolation = experiment.isolation();
    let network = CommittedNetwork::of(&mut env.host, &mut env.slots, isolation, env.backend.0)?;
    network.evaluate(batches, tools, &mut env.stats.fallbacks)
}
