//! One training batch of one env: forward, backward, unscaling, statistics, clip, guard, update.
//!
//! Host and seeds learn in one backward pass but are never mixed: each is a group with its own norm, clip, guard and
//! optimizer, so a diverged seed stalls only itself.

use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use tch::{Kind, Tensor};

use super::components::{EnvFeed, TrainingEnvItem};
use super::graphs::TrainingTopology;
use super::hooks::{BatchHooks, BatchPoint};
use super::pack::PackLayout;
use super::precision::TrainingPrecision;
use crate::clock::RunClock;
use crate::data::Batch;
use crate::env::{Experiment, FallbackGuard, grafted, in_batch};
use crate::growth::SeedStage;
use crate::health::Failure;
use crate::kernels::{ForcedKernels, GradientThresholds, GroupNorm, GroupUpdate, backward};
use crate::nn::{Implementation, LossScaler, Mode, Optimizer};
use crate::scenario::Fault;
use crate::seed::{STATISTICS_STRIDE, SeedRecord, trains};
use crate::telemetry::Fallbacks;
use crate::torch::{Autocast, Backend, FiniteGuard, Stream, TorchError, peek};

/// Settings and resources of a batch's training.
#[derive(SystemParam)]
pub struct TrainingRules<'w> {
    /// The run's settings.
    pub experiment: Res<'w, Experiment>,
    precision: Res<'w, TrainingPrecision>,
    /// Position of the run.
    pub clock: Res<'w, RunClock>,
    /// The guarded path of what fails in arithmetic.
    pub fallbacks: Res<'w, FallbackGuard>,
    /// Functions called inside batches.
    pub hooks: Res<'w, BatchHooks>,
}

impl TrainingRules<'_> {
    /// Plays batch `batch` of the step: gathered on the env's device, through the network and back, and learnt from. Returns the
    /// time in which this thread brought it there.
    ///
    /// # Errors
    /// The error of the first part that fails; it knows its batch.
    pub fn train_on(&self, env: &mut TrainingEnvItem, stream: &Stream, batch: usize) -> Result<Duration, Failure> {
        let (mut samples, copied) = fetch_batch(&mut env.feed, batch)?;
        let backend = env.backend.0;
        if self.experiment.scenario.run.cuda_graphs && !backend.uses_own_kernels() {
            // From now on seeds read the amplitudes there, even in a batch that is not recorded.
            env.slots
                .place_amplitudes(self.experiment.isolation(), backend.device)?;
        }
        if self.may_be_recorded(env) {
            in_batch("train", batch, || self.play_recorded(env, stream, (batch, &samples)))?;
            return Ok(copied);
        }
        let call = |point, env: &mut TrainingEnvItem, samples: &mut Batch| {
            let around = (&*self.clock, &*self.experiment);
            self.hooks.call(point, (batch, samples), env, around)
        };
        call(BatchPoint::Fetched, env, &mut samples)?;
        in_batch("train", batch, || self.forward_backward(env, (batch, &samples)))?;
        call(BatchPoint::Backward, env, &mut samples)?;
        in_batch("optimize", batch, || self.optimize(env, stream, is_sampled(batch)))?;
        call(BatchPoint::Updated, env, &mut samples)?;
        Ok(copied)
    }

    /// Returns whether batches differ only in the env's own tensors.
    fn may_be_recorded(&self, env: &mut TrainingEnvItem) -> bool {
        let scenario = &self.experiment.scenario;
        scenario.run.cuda_graphs
            // With envs on CUDA, those on a CPU compute as they were meant to.
            && (env.backend.0.device.is_cuda() || scenario.cuda_devices().is_empty())
            && scenario.training.micro_batches == 1
            && scenario.faults.is_empty()
            && !self.hooks.look_into_training()
            && self.first_precision(env) == self.precision.0
            // Tensor by tensor the learning rate is a number.
            && env.optimizer.0.get().implementation() != Implementation::Plain
    }

    /// Plays the batch by its recording. Without one, or if there can be none, it plays as usual and puts results aside first.
    fn play_recorded(
        &self,
        env: &mut TrainingEnvItem,
        stream: &Stream,
        (batch, samples): (usize, &Batch),
    ) -> Result<(), Failure> {
        let rules = (
            self.experiment.isolation(),
            self.experiment.scenario.lifecycle.on_commit,
        );
        let topology = TrainingTopology::of(samples, self.precision.0, &env.slots.0, rules);
        let (aside, is_sampled) = (env.sums.0.get().aside(), is_sampled(batch));
        let mut graphs = std::mem::take(env.graphs.0.get());
        let played = graphs.in_place(samples).map_err(Failure::from).and_then(|samples| {
            let refused = graphs.play(topology, is_sampled, || {
                self.forward_backward(env, (aside, &samples))?;
                self.optimize(env, stream, is_sampled)
            })?;
            if let Some(reason) = refused {
                let mut fallbacks = Fallbacks::default();
                self.fallbacks.note_graph(&mut fallbacks, reason);
                env.stats.fallbacks += fallbacks;
            }
            Ok(())
        });
        *env.graphs.0.get() = graphs;
        played?;
        Ok(env.sums.0.get().take_aside(batch)?)
    }

    /// Precision of the env's batches, unless one turns out to be beyond it.
    fn first_precision(&self, env: &TrainingEnvItem) -> Option<Kind> {
        let is_first_step = self.clock.step() == 1;
        let nonfinite_batches = if is_first_step { 0 } else { env.train.nonfinite_batches };
        self.precision.at_first(env.backend.0.device, nonfinite_batches)
    }

    /// Runs through the network and back; gradients of the whole batch are left in the parameters.
    fn forward_backward(&self, env: &mut TrainingEnvItem, (batch, samples): (usize, &Batch)) -> Result<(), Failure> {
        let backend = env.backend.0;
        let precision = self.first_precision(env);
        let (mut fallbacks, mut fault) = (Fallbacks::default(), self.due_fault(env, batch));
        let mut begun = None;
        let mut compute = |precision, fallbacks: &mut Fallbacks| {
            self.fallbacks.compute(backend, fallbacks, |backend| {
                self.undo(env, batch, &mut begun)?;
                let way = (backend, precision, fault.take());
                self.attempt(env, (batch, samples), way)
            })
        };
        let is_beyond = compute(precision, &mut fallbacks)?;
        if is_beyond {
            compute(None, &mut fallbacks)?;
        }
        if is_beyond || precision != self.precision.0 {
            self.fallbacks.note_autocast(&mut fallbacks);
        }
        if let Some(fallbacks) = fallbacks.any() {
            env.stats.fallbacks += fallbacks;
        }
        Ok(())
    }

    /// The damage that the scenario wants done to this batch in training itself.
    fn due_fault(&self, env: &TrainingEnvItem, batch: usize) -> Option<&Fault> {
        let moment = (env.id.index, self.clock.round(), self.clock.step(), batch);
        let mut faults = self.experiment.scenario.faults.iter();
        let due = faults.find(|entry| {
            let is_of_batch = matches!(entry.fault, Fault::KernelError(_) | Fault::NanLoss);
            is_of_batch && (entry.env, entry.round, entry.step, entry.batch.unwrap_or(0)) == moment
        });
        due.map(|entry| &entry.fault)
    }

    /// Undoes everything that an attempt at the batch has changed. `begun`: the host's running statistics before the first.
    fn undo(&self, env: &mut TrainingEnvItem, batch: usize, begun: &mut Option<Option<Tensor>>) -> Result<(), Failure> {
        env.optimizer.0.get().drop_gradients()?;
        for optimizer in env.seed_optimizers.0.iter_mut().flatten() {
            optimizer.get().drop_gradients()?;
        }
        let statistics = env.host.0.get().params().buffer_guard();
        let Some(begun) = begun else {
            // Each part of a batch overwrites the kept statistics.
            let parts = statistics.filter(|_| self.experiment.scenario.training.micro_batches > 1);
            statistics.map_or(Ok(()), FiniteGuard::keep)?;
            *begun = Some(parts.map(FiniteGuard::kept).transpose().map_err(TorchError::from)?);
            return Ok(());
        };
        statistics.map_or(Ok(()), |statistics| statistics.restore(begun.as_ref()))?;
        Ok(env.sums.0.get().forget_batch(batch).map_err(TorchError::from)?)
    }

    /// Tries a batch. Returns whether a loss is beyond the precision: nothing has been learnt from the batch then.
    fn attempt(
        &self,
        env: &mut TrainingEnvItem,
        (batch, samples): (usize, &Batch),
        (backend, precision, fault): (Backend, Option<Kind>, Option<&Fault>),
    ) -> Result<bool, Failure> {
        let _failing = match fault {
            Some(Fault::KernelError(call)) => Some(ForcedKernels::failing(*call)),
            _ => None,
        };
        let host = env.host.0.get();
        let grafts = env.slots.training_grafts(self.experiment.isolation());
        let mut first_row = 0;
        for rows in micro_batches(samples.n, self.experiment.scenario.training.micro_batches) {
            let x = part(&samples.x, first_row, rows, samples.n)?;
            let y = part(&samples.y, first_row, rows, samples.n)?;
            let statistics = host.params().buffer_guard();
            if first_row > 0 {
                statistics.map_or(Ok(()), FiniteGuard::keep)?;
            }
            let mut logits = {
                let autocast = |kind| Autocast::new(backend.device, kind);
                let _autocast = precision.map(autocast).transpose()?;
                grafted::forward(&**host, &grafts, &x, Mode::Train)?
            };
            if fault == Some(&Fault::NanLoss) {
                logits = logits.f_mul_scalar(f64::NAN).map_err(TorchError::from)?;
            }
            let sums = env.sums.0.get();
            let mut objective = sums
                .train_loss((batch, first_row), &logits, &y, self.experiment.task.label_smoothing)
                .map_err(TorchError::from)?;
            // Checks this where reading it waits for no device. The loss scaler handles gradients that overflow.
            if precision.is_some() && peek(&objective)?.is_some_and(|loss| !loss.is_finite()) {
                return Ok(true);
            }
            if rows < samples.n {
                let share = rows as f64 / samples.n as f64;
                objective = objective.f_mul_scalar(share).map_err(TorchError::from)?;
            }
            if let Some(scaler) = env.scaler.0.get() {
                objective = scaler.scaled(&objective)?;
            }
            // Nothing learns where the host is frozen and no seed trains.
            if objective.requires_grad() {
                backward(&objective, backend)?;
            }
            // The update of a batch without finite numbers is suppressed, and so are the statistics that it would leave.
            statistics.map_or(Ok(()), FiniteGuard::restore_unless_finite)?;
            first_row += rows;
        }
        Ok(false)
    }

    /// Unscaling, statistics, clip, guard and update of each group, in this order and host first; then the scale moves.
    fn optimize(&self, env: &mut TrainingEnvItem, stream: &Stream, is_sampled: bool) -> Result<(), Failure> {
        let lifecycle = &self.experiment.scenario.lifecycle;
        let max_norm = self.experiment.task.max_grad_norm;
        let thresholds = GradientThresholds::new(lifecycle.exploding_factor, max_norm);
        let sums = env.sums.0.get();
        let layout = sums.layout();
        let scaler = env.scaler.0.get();
        let update = |is_measured: bool, columns| GroupUpdate {
            max_norm,
            statistics: (is_sampled && is_measured).then_some(thresholds),
            is_sampled,
            pack: sums.pack(),
            columns,
        };

        let (optimizer, found) = (env.optimizer.0.get(), env.norms.host.get());
        unscale(scaler.as_ref(), optimizer, found)?;
        optimizer.update(found, &update(true, layout.host_group()))?;
        note_updates(stream, optimizer);
        let is_frozen = optimizer.params().is_empty();
        for (index, optimizer) in env.seed_optimizers.0.iter_mut().enumerate() {
            let Some(optimizer) = optimizer else { continue };
            let seed = env.slots.0[index].record.as_ref();
            if !seed.is_some_and(|seed| trains(seed.stage, seed.alpha.mode(), lifecycle.on_commit)) {
                continue;
            }
            let is_measured = seed.is_some_and(is_measured);
            let (optimizer, found) = (optimizer.get(), env.norms.seeds[index].get());
            unscale(scaler.as_ref(), optimizer, found)?;
            optimizer.update(found, &update(is_measured, layout.slot_group(index)))?;
            note_updates(stream, optimizer);
            if is_frozen && scaler.is_some() {
                // Only seeds show whether the scale of the loss is too large.
                let found = found.bad.shallow_clone();
                let _ = env
                    .norms
                    .host
                    .get()
                    .bad
                    .f_logical_or_(&found)
                    .map_err(TorchError::from)?;
            }
        }
        if let Some(scaler) = scaler {
            // A seed that has diverged does not drive the scale of its host down.
            scaler.update(&env.norms.host.get().bad)?;
            stream.note_write(scaler.scale());
            sums.columns(PackLayout::LOSS_SCALE..PackLayout::LOSS_SCALE + 1)
                .f_copy_(scaler.scale())
                .map_err(TorchError::from)?;
        }
        stream.note_write(sums.pack());
        Ok(())
    }
}

/// Batch `batch` of the step, gathered on the env's device, and how long this thread took to get it there.
fn fetch_batch(feed: &mut EnvFeed, batch: usize) -> Result<(Batch, Duration), Failure> {
    let began = Instant::now();
    let samples = in_batch("fetch", batch, || Ok(feed.0.get().fetch(batch)?))?;
    Ok((samples, began.elapsed()))
}

/// Returns whether statistics of the gradients are taken in batch `batch` of a step.
fn is_sampled(batch: usize) -> bool {
    batch.is_multiple_of(STATISTICS_STRIDE)
}

/// Sizes of the parts of a batch of `n`: as even as can be, larger ones first.
fn micro_batches(n: usize, parts: usize) -> impl Iterator<Item = usize> {
    let parts = parts.clamp(1, n.max(1));
    (0..parts).map(move |part| n / parts + usize::from(part < n % parts))
}

/// Rows `first..first + count` of `whole`, itself if that is all.
fn part(whole: &Tensor, first: usize, count: usize, n: usize) -> Result<Tensor, TorchError> {
    if count == n {
        Ok(whole.shallow_clone())
    } else {
        Ok(whole.f_narrow(0, first as i64, count as i64)?)
    }
}

/// Divides the gradients of a group by the scale of their loss, before anything looks at them.
fn unscale(scaler: Option<&LossScaler>, optimizer: &Optimizer, found: &GroupNorm) -> Result<(), TorchError> {
    scaler.map_or(Ok(()), |scaler| scaler.unscale(optimizer.params(), &found.bad))
}

/// Notes for the trace the parameters that an optimizer has just updated.
fn note_updates(stream: &Stream, optimizer: &Optimizer) {
    for param in optimizer.params() {
        stream.note_write(param);
    }
}

/// Whose gradients gates and controllers look at. Later stages are only watched for gradients that are not finite.
pub fn is_measured(seed: &SeedRecord) -> bool {
    matches!(seed.stage, SeedStage::Training | SeedStage::Blending)
}

#[cfg(test)]
mod tests;
