//! What becomes of a step that a device had no memory for.

use bevy_ecs::prelude::*;

use crate::clock::RunClock;
use crate::env::{EnvPool, Experiment};
use crate::health::{EngineError, RunHealth};
use crate::scenario::OnOutOfMemory;
use crate::schedule::all_schedules;
use crate::telemetry::{Event, RoundRestarted, TelemetryHub, TelemetryOutbox};
use crate::torch::{HostSyncCounter, TorchError};
use crate::training::MicroBatches;

/// Whether the step failed for lack of memory and the round is to begin anew, with batches in twice as many parts.
/// Everything in a round follows from seed and round, so nothing but the split differs.
pub(super) fn recovers_from_lack_of_memory(world: &mut World) -> bool {
    let experiment = world.resource::<Experiment>();
    if experiment.scenario.run.on_oom != OnOutOfMemory::HalveMicroBatch {
        return false;
    }
    // A panic that comes out of a schedule takes it along: nothing can be played without it.
    let schedules = world.resource::<Schedules>();
    if !all_schedules().into_iter().all(|label| schedules.contains(label)) {
        return false;
    }
    let batch_size = experiment.task.batch_size;
    let failure = world.resource::<RunHealth>().failure.as_ref();
    let parts = world.get_resource::<MicroBatches>();
    let halved = parts.and_then(|parts| parts.doubled(batch_size));
    let Some((error, parts)) = failure.filter(|error| is_out_of_memory(error)).zip(halved) else {
        return false;
    };
    let error = error.to_string();
    tracing::warn!(
        "{error}; the round begins anew with training.micro_batches: {}",
        parts.0
    );
    let clock = world.resource::<RunClock>();
    let (round, steps_lost) = (clock.round(), clock.step());
    let event = RoundRestarted {
        micro_batches: parts.0 as u64,
        steps_lost,
        error,
    };
    tell(world, Event::round(round, event));
    world.insert_resource(parts);
    world.resource_mut::<RunHealth>().failure = None;
    // The step did not get as far as its sync.
    world.resource::<HostSyncCounter>().allow();
    drop(world.resource::<EnvPool>().take_failed());
    true
}

/// Behind all that was told of the round, and before all that is going to be.
fn tell(world: &mut World, event: Event) {
    let told = world.try_resource_scope(|world, mut hub: Mut<TelemetryHub>| {
        let mut outbox = world.resource_mut::<TelemetryOutbox>();
        hub.flush(&mut outbox);
        outbox.push(event);
        hub.flush(&mut outbox);
    });
    if told.is_none() {
        tracing::debug!("nobody listens to what the run tells");
    }
}

fn is_out_of_memory(error: &EngineError) -> bool {
    matches!(
        TorchError::classify(error.failure.to_string()),
        TorchError::OutOfMemory(_)
    )
}
