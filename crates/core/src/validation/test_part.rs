//! The committed network at the end of an episode, on the test part, which nothing else reads.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use tch::{Kind, Tensor};

use super::coalition::coalition_forward;
use super::coalition_tree::CoalitionTree;
use super::pass::live_slots;
use super::plan::CoalitionPlan;
use crate::clock::RunClock;
use crate::data::evaluate_rows;
use crate::env::{
    Devices, EnvBackend, EnvId, EnvStream, EpisodeStats, Experiment, FallbackGuard, HostModel, LoadedData, SeedSlots,
};
use crate::growth::SeedStage;
use crate::health::{Failure, InEnv};
use crate::telemetry::{EpisodeEnd, Phase, PhaseClock};
use crate::torch::{HostSyncCounter, Inference, TorchError, read_f64};

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
    (syncs, guard): (Res<HostSyncCounter>, Res<FallbackGuard>),
    mut phases: ResMut<PhaseClock>,
) -> Result<(), Failure> {
    phases.enter(Phase::Validate);
    for mut env in &mut envs {
        match env.stats.end {
            Some(end) if end.reason == EpisodeEnd::Failed => {
                env.result.0 = None;
                continue;
            }
            Some(end) if end.step == clock.step() => {}
            Some(_) => continue,
            None => {
                env.result.0 = None;
                continue;
            }
        }
        let set = data.resident.get()[devices.index_of_env(env.id.index)].test();
        if set.is_empty() {
            env.result.0 = None;
            continue;
        }
        let batches = set.batches(experiment.task.batch_size, usize::MAX);
        env.result.0 = Some(test(&mut env, &batches, &experiment, (&syncs, &guard)).in_env(env.id.index)?);
    }
    phases.enter(Phase::Record);
    Ok(())
}

fn test(
    env: &mut TestedEnvItem,
    batches: &[crate::data::Batch],
    experiment: &Experiment,
    (syncs, guard): (&HostSyncCounter, &FallbackGuard),
) -> Result<(f64, f64), Failure> {
    let _guard = env.stream.0.get().enter()?;
    // A rollback may have changed the host since this step's validation folded it.
    env.host.0.get().refill()?;
    let is_committed: SmallVec<[bool; 4]> = env
        .slots
        .records()
        .map(|record| record.is_some_and(|seed| seed.stage == SeedStage::Committed))
        .collect();
    let mut live = live_slots(&mut env.slots.0, experiment.isolation());
    live.retain(|slot| is_committed[slot.slot]);
    let plan = CoalitionPlan {
        players: SmallVec::new(),
        masks: vec![0],
    };
    let tree = CoalitionTree::new(&plan, &live);
    let _inference = Inference::new()?;
    let mut sums = Vec::with_capacity(2 * batches.len());
    for batch in batches {
        let logits = guard.compute(env.backend.0, &mut env.stats.fallbacks, |_| {
            Ok(coalition_forward(&**env.host.0.get(), &live, &tree, &batch.x)?)
        })?;
        let (losses, is_correct) = evaluate_rows(&logits, &batch.y).map_err(TorchError::from)?;
        for values in [is_correct, losses] {
            sums.push(values.f_sum(Kind::Double).map_err(TorchError::from)?);
        }
    }
    let sums = read_f64(&Tensor::f_stack(&sums, 0).map_err(TorchError::from)?, syncs)?;
    let total = |first: usize| sums[first..].iter().step_by(2).sum::<f64>();
    let predictions = batches.iter().map(|batch| batch.y.numel()).sum::<usize>() as f64;
    Ok((100.0 * total(0) / predictions, total(1) / predictions))
}
