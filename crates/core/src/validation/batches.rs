//! The loop over the batches of a step: every env trains on its own, then validates.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use tch::Device;

use super::pass::{SteppingEnv, SteppingEnvItem, validate_on};
use crate::env::{Devices, EnvId, EnvPool, EnvStream, StepStatus};
use crate::health::Failure;
use crate::telemetry::{Phase, PhaseClock, TelemetryOutbox};
use crate::torch::Stream;
use crate::training::TrainingRules;

/// Who is outside in the loop. Every env does the same in the same order, so no number depends on it.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOrder {
    /// An env plays all its batches in one go: workers need not meet after each. Chosen where all devices are CPUs.
    EnvByEnv,
    /// All envs play a batch before any plays the next: every device has work of several envs queued.
    BatchByBatch,
}

impl BatchOrder {
    fn on(devices: &Devices) -> Self {
        match devices.0.iter().all(|backend| backend.device == Device::Cpu) {
            true => Self::EnvByEnv,
            false => Self::BatchByBatch,
        }
    }
}

/// Thread time of all envs, whose workers add to it side by side.
#[derive(Default)]
struct Spent(AtomicU64);

impl Spent {
    fn add(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    fn taken(self) -> Duration {
        Duration::from_nanos(self.0.into_inner())
    }
}

/// Trains all envs on the batches of a step, then validates them; hooks are called inside. `order`: where an application
/// has chosen it.
pub fn play_batches(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvStream, SteppingEnv)>,
    rules: TrainingRules,
    order: Option<Res<BatchOrder>>,
    (devices, pool): (Res<Devices>, Res<EnvPool>),
    (mut outbox, mut phases): (ResMut<TelemetryOutbox>, ResMut<PhaseClock>),
) -> Result<(), Failure> {
    let (train, val) = rules.clock.batches_per_step();
    let (trained, validated, copied) = (Spent::default(), Spent::default(), Spent::default());
    let play = |env: &mut SteppingEnvItem, stream: &Stream, nth: usize| {
        let began = Instant::now();
        let (spent, played) = match nth.checked_sub(train) {
            None => {
                let trained_on = rules.train_on(&mut env.training, stream, nth);
                (&trained, trained_on.map(|time| copied.add(time)))
            }
            Some(batch) => (&validated, validate_on(env, &rules, stream, batch)),
        };
        spent.add(began.elapsed());
        played
    };
    let all = train + val;
    let played = match order.map_or_else(|| BatchOrder::on(&devices), |order| *order) {
        BatchOrder::EnvByEnv => pool.for_each_active(envs.iter_mut(), |_, stream, mut env| {
            (0..all).try_for_each(|nth| play(&mut env, stream, nth))
        }),
        BatchOrder::BatchByBatch => (0..all).try_for_each(|nth| {
            pool.for_each_active(envs.iter_mut(), |_, stream, mut env| play(&mut env, stream, nth))
        }),
    };
    phases.divide([(Phase::Train, trained.taken()), (Phase::Validate, validated.taken())]);
    phases.add_copied(copied.taken());
    // Told before the failure that may end the run.
    outbox.extend(rules.hooks.take_events());
    played
}
