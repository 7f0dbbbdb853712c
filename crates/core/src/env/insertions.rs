//! Follows growth events until their effect is known. The numbers are those that a step has read anyway.

use bevy_ecs::prelude::*;

use super::{EnvId, EpisodeStats, Experiment, GradReport, SeedSlots, StepStatus, ValMetrics};
use crate::clock::RunClock;
use crate::telemetry::TelemetryOutbox;

/// Takes the step's numbers and writes `growth_effect` where all of an insertion's are there, or where no more will come.
pub fn tell_insertions(
    mut envs: Query<(
        &EnvId,
        &StepStatus,
        &ValMetrics,
        &GradReport,
        &SeedSlots,
        &mut EpisodeStats,
    )>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    mut outbox: ResMut<TelemetryOutbox>,
) {
    let step = clock.step();
    for (id, status, val, gradients, slots, mut stats) in envs.iter_mut().sort_unstable::<&EnvId>() {
        if stats.insertions.is_empty() {
            continue;
        }
        let (is_over, context) = (stats.end.is_some(), experiment.context(id, &clock));
        stats.insertions.retain_mut(|insertion| {
            let index = slots.0.iter().position(|slot| slot.spec.slot == insertion.slot());
            if status.participates() {
                let training = index.and_then(|index| gradients.seeds.get(index).copied().flatten());
                let sums = training.and_then(|training| training.gradients);
                let ratio = sums.and_then(|sums| sums.ratio_to(&gradients.host, f64::INFINITY));
                insertion.measure(val.at(step), ratio);
            }
            let seed = index.and_then(|index| slots.0[index].record.as_ref());
            let is_told = is_over || insertion.is_complete(step, seed);
            if is_told {
                outbox.push(insertion.event(context));
            }
            !is_told
        });
    }
}
