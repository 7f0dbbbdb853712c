//! The loop over the batches of a step, and the training half of it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use tch::Device;

use super::components::TrainingEnv;
use super::step::TrainingRules;
use crate::env::{Devices, EnvId, EnvPool, EnvStream, StepStatus};
use crate::health::Failure;
use crate::telemetry::{PhaseClock, TelemetryOutbox};

/// Who is outside in the loop. Every env does the same in the same order, so no number depends on it.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOrder {
    /// An env plays all its batches in one go: workers need not meet after each. Chosen where all devices are CPUs.
    EnvByEnv,
    /// All envs play a batch before any plays the next: every device has work of several envs queued.
    BatchByBatch,
}

/// How envs play the batches of a step.
#[derive(SystemParam)]
pub struct BatchLoop<'w> {
    /// Plays a part of the batches in all envs.
    pub pool: Res<'w, EnvPool>,
    devices: Res<'w, Devices>,
    /// Where an application has chosen it.
    order: Option<Res<'w, BatchOrder>>,
}

impl BatchLoop<'_> {
    /// The first `count` batches in parts: every env plays one before any plays the next.
    pub fn parts(&self, count: usize) -> impl Iterator<Item = Range<usize>> {
        let is_on_cpus = self.devices.0.iter().all(|backend| backend.device == Device::Cpu);
        let order = self.order.as_deref().copied();
        let is_in_one_go = order.map_or(is_on_cpus, |order| order == BatchOrder::EnvByEnv);
        let part = if is_in_one_go { count.max(1) } else { 1 };
        (0..count).step_by(part).map(move |first| first..first + part)
    }
}

/// Trains all envs on the step's training batches; hooks are called inside. An env that fails is left out of the rest of the step.
pub fn train_batches(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvStream, TrainingEnv)>,
    rules: TrainingRules,
    batches: BatchLoop,
    mut outbox: ResMut<TelemetryOutbox>,
    mut phases: ResMut<PhaseClock>,
) -> Result<(), Failure> {
    let (count, _) = rules.clock.batches_per_step();
    // Nanoseconds of all envs, whose workers add to it side by side.
    let copied = AtomicU64::new(0);
    let trained = batches.parts(count).try_for_each(|part| {
        batches.pool.for_each_active(envs.iter_mut(), |_, stream, mut env| {
            part.clone().try_for_each(|batch| {
                let fetched_in = rules.train_on(&mut env, stream, batch)?;
                copied.fetch_add(fetched_in.as_nanos() as u64, Ordering::Relaxed);
                Ok::<_, Failure>(())
            })
        })
    });
    phases.add_copied(Duration::from_nanos(copied.into_inner()));
    // Told before the failure that may end the run.
    outbox.extend(rules.hooks.take_events());
    trained
}
