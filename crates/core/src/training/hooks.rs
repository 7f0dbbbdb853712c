//! Code of applications, faults and observers inside a batch: functions that every env calls at a point of each.
//!
//! A hook runs on the worker of its env, in the guard of the env's stream, and sees only that env. The order of the envs is not
//! defined.

use std::sync::{Mutex, PoisonError};

use bevy_app::App;
use bevy_ecs::prelude::*;

use super::components::TrainingEnvItem;
use crate::clock::RunClock;
use crate::data::Batch;
use crate::env::{Experiment, in_batch};
use crate::health::Failure;
use crate::telemetry::{Event, Payload};

/// The point in a batch at which a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchPoint {
    /// The samples of a training batch are on the env's device.
    Fetched,
    /// The gradients of a training batch are in the parameters; nothing has been measured, clipped or applied.
    Backward,
    /// The parameters have been updated by a training batch.
    Updated,
    /// A validation batch has been evaluated with and without the env's seeds. All envs of a device have the same samples, so
    /// don't change their values.
    Validated,
}

/// The batch of one env that a hook is called in.
pub struct HookedBatch<'a, 'w, 's> {
    /// Among the training or the validation batches of the step, from 0.
    pub index: usize,
    /// Training or validation batches of the step.
    pub count: usize,
    /// Samples and their targets.
    pub samples: &'a mut Batch,
    /// The env that plays the batch.
    pub env: &'a mut TrainingEnvItem<'w, 's>,
    /// Round and step.
    pub clock: &'a RunClock,
    /// The run's settings.
    pub experiment: &'a Experiment,
    events: &'a Mutex<Vec<(usize, Event)>>,
}

impl HookedBatch<'_, '_, '_> {
    /// Puts an event of the env into the record, in the order of envs, then of batches.
    pub fn emit(&self, payload: impl Into<Payload>) {
        let event = Event::env(self.experiment.context(self.env.id, self.clock), payload);
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push((self.env.id.index, event));
    }
}

/// A hook. Its error stops the env, or the run, like any error in the batches of an env.
type Hook = Box<dyn Fn(&mut HookedBatch) -> Result<(), Failure> + Send + Sync>;

/// All hooks, in the order in which they were added.
#[derive(Resource, Default)]
pub struct BatchHooks {
    hooks: Vec<(BatchPoint, Hook)>,
    events: Mutex<Vec<(usize, Event)>>,
}

impl BatchHooks {
    /// Returns whether anything is called in training batches.
    pub(super) fn look_into_training(&self) -> bool {
        self.hooks.iter().any(|(point, _)| *point != BatchPoint::Validated)
    }

    /// Adds one before those that there are.
    pub(crate) fn add_first(
        &mut self,
        point: BatchPoint,
        hook: impl Fn(&mut HookedBatch) -> Result<(), Failure> + Send + Sync + 'static,
    ) {
        self.hooks.insert(0, (point, Box::new(hook)));
    }

    /// Calls the hooks of `point`, if there are any, in a batch that is the nth of its kind.
    ///
    /// # Errors
    /// The error of the first hook that fails; it knows its batch.
    pub fn call<'a, 'w, 's>(
        &'a self,
        point: BatchPoint,
        (index, samples): (usize, &'a mut Batch),
        env: &'a mut TrainingEnvItem<'w, 's>,
        (clock, experiment): (&'a RunClock, &'a Experiment),
    ) -> Result<(), Failure> {
        if self.hooks.is_empty() {
            return Ok(());
        }
        let (train, val) = clock.batches_per_step();
        let (count, phase) = match point {
            BatchPoint::Validated => (val, "a hook of the validation batch"),
            BatchPoint::Fetched | BatchPoint::Backward | BatchPoint::Updated => (train, "a hook of the batch"),
        };
        let mut batch = HookedBatch {
            index,
            count,
            samples,
            env,
            clock,
            experiment,
            events: &self.events,
        };
        let mut due = self.hooks.iter().filter(|(of, _)| *of == point);
        in_batch(phase, index, || due.try_for_each(|(_, hook)| hook(&mut batch)))
    }

    /// The events of all envs since this was last asked, in the order of envs.
    pub fn take_events(&self) -> impl Iterator<Item = Event> + use<> {
        let mut events = std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
        events.sort_by_key(|(env, _)| *env);
        events.into_iter().map(|(_, event)| event)
    }
}

/// Adds hooks to an app.
pub trait OnBatch {
    /// Calls `hook` at `point` of every batch of every env.
    ///
    /// ```
    /// # extern crate simic_core as simic_engine;
    /// # use bevy_app::App;
    /// use simic_engine::prelude::*;
    ///
    /// # let mut app = App::new();
    /// app.on_batch(BatchPoint::Backward, |batch| {
    ///     if batch.index + 1 == batch.count {
    ///         println!("env {}, step {}: gradients of the last batch", batch.env.id.index, batch.clock.step());
    ///     }
    ///     Ok(())
    /// });
    /// ```
    fn on_batch(
        &mut self,
        point: BatchPoint,
        hook: impl Fn(&mut HookedBatch) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> &mut Self;
}

impl OnBatch for App {
    fn on_batch(
        &mut self,
        point: BatchPoint,
        hook: impl Fn(&mut HookedBatch) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> &mut Self {
        self.init_resource::<BatchHooks>();
        let mut hooks = self.world_mut().resource_mut::<BatchHooks>();
        hooks.hooks.push((point, Box::new(hook)));
        self
    }
}
