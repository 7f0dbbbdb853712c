//! What applications, faults and observers do inside a training batch: functions that every env calls at a point of each.
//!
//! A hook runs on the worker of its env, in the guard of the env's stream, and sees that env alone; in which order envs come by is not
//! defined.

use std::sync::{Mutex, PoisonError};

use bevy_app::App;
use bevy_ecs::prelude::*;

use super::step::TrainingEnvItem;
use crate::clock::RunClock;
use crate::data::Batch;
use crate::env::Experiment;
use crate::health::Failure;
use crate::telemetry::{Event, Payload};

/// Where in a training batch a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchPoint {
    /// The samples are on the env's device.
    Fetched,
    /// The gradients of the batch are in the parameters; nothing has been measured, clipped or applied.
    Backward,
    /// The parameters have been updated.
    Updated,
}

/// The batch of one env that a hook is called in.
pub struct HookedBatch<'a, 'w, 's> {
    /// Of the step, from 0.
    pub index: usize,
    /// Of the step.
    pub count: usize,
    /// What is learnt from.
    pub samples: &'a mut Batch,
    /// The env that learns.
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

/// Its error stops the env, or the run, as any in the batches of an env does.
type Hook = Box<dyn Fn(&mut HookedBatch) -> Result<(), Failure> + Send + Sync>;

/// All hooks, in the order in which they were added.
#[derive(Resource, Default)]
pub struct BatchHooks {
    hooks: Vec<(BatchPoint, Hook)>,
    events: Mutex<Vec<(usize, Event)>>,
}

impl BatchHooks {
    /// Whether nothing is called in any batch.
    pub(super) fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// Adds one before those that there are.
    pub(crate) fn add_first(
        &mut self,
        point: BatchPoint,
        hook: impl Fn(&mut HookedBatch) -> Result<(), Failure> + Send + Sync + 'static,
    ) {
        self.hooks.insert(0, (point, Box::new(hook)));
    }

    /// Calls those of `point`, if there are any.
    pub(super) fn call<'a, 'w, 's>(
        &'a self,
        point: BatchPoint,
        (index, samples): (usize, &'a mut Batch),
        env: &'a mut TrainingEnvItem<'w, 's>,
        (clock, experiment): (&'a RunClock, &'a Experiment),
    ) -> Result<(), Failure> {
        if self.hooks.is_empty() {
            return Ok(());
        }
        let mut batch = HookedBatch {
            index,
            count: clock.batches_per_step().0,
            samples,
            env,
            clock,
            experiment,
            events: &self.events,
        };
        let mut due = self.hooks.iter().filter(|(of, _)| *of == point);
        due.try_for_each(|(_, hook)| hook(&mut batch))
    }

    /// The events of all envs since this was last asked, in the order of envs.
    pub fn take_events(&self) -> impl Iterator<Item = Event> + use<> {
        let mut events = std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
        events.sort_by_key(|(env, _)| *env);
        events.into_iter().map(|(_, event)| event)
    }
}

/// Adds hooks to an app.
pub trait OnTrainBatch {
    /// Calls `hook` at `point` of every training batch of every env.
    ///
    /// ```
    /// # extern crate simic_core as simic_engine;
    /// # use bevy_app::App;
    /// use simic_engine::prelude::*;
    ///
    /// # let mut app = App::new();
    /// app.on_train_batch(BatchPoint::Backward, |batch| {
    ///     if batch.index + 1 == batch.count {
    ///         println!("env {}, step {}: gradients of the last batch", batch.env.id.index, batch.clock.step());
    ///     }
    ///     Ok(())
    /// });
    /// ```
    fn on_train_batch(
        &mut self,
        point: BatchPoint,
        hook: impl Fn(&mut HookedBatch) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> &mut Self;
}

impl OnTrainBatch for App {
    fn on_train_batch(
        &mut self,
        point: BatchPoint,
        hook: impl Fn(&mut HookedBatch) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> &mut Self {
        self.init_resource::<BatchHooks>();
        self.world_mut()
            .resource_mut::<BatchHooks>()
            .hooks
            .push((point, Box::new(hook)));
        self
    }
}
