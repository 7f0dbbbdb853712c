//! Envs side by side: one rayon pool, one intra-op thread per worker.
//!
//! An env's numbers depend on its own components only, so neither the number of workers nor their timing shows in them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;

use super::fallbacks::is_of_device;
use super::{EnvId, EnvStream, StepStatus};
use crate::health::Failure;
use crate::scenario::{DeviceSpec, OnEnvError};
use crate::threads::start_worker;
use crate::torch::{self, POOL_STREAMS, Stream};

/// The workers that run the envs of a system.
#[derive(Resource)]
pub struct EnvPool {
    pool: rayon::ThreadPool,
    /// The worker of each env on CUDA, by env: no other plays it.
    workers: BTreeMap<usize, usize>,
    on_env_error: OnEnvError,
    /// Envs that have failed in this step, where that does not end the run: nothing more is computed for them.
    failed: Mutex<BTreeMap<usize, Failure>>,
    /// Recent time of each env: work done long ago counts for less and less.
    recent: Mutex<BTreeMap<usize, Duration>>,
}

impl EnvPool {
    /// Starts `threads` workers, at least one. Each gives libtorch one thread inside an op. They play `envs`, which live on
    /// `devices` in rotation.
    pub fn new(
        threads: usize,
        on_env_error: OnEnvError,
        (envs, devices): (&[usize], &[DeviceSpec]),
    ) -> Result<Self, Failure> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|index| format!("env-worker-{index}"))
            .start_handler(|_| {
                // Envs run side by side. A worker whose setting fails is slower, not wrong.
                if let Err(error) = torch::set_intra_op_threads(NonZero::<u16>::MIN) {
                    tracing::warn!("an env worker keeps libtorch's own number of threads: {error}");
                }
            })
            .exit_handler(|_| torch::free_thread_buffers())
            .spawn_handler(start_worker)
            .build()
            .map_err(|error| Failure::message(format!("the {threads} env workers could not be started: {error}")))?;
        Ok(Self {
            workers: workers_on_cuda(envs, devices, pool.current_num_threads()),
            pool,
            on_env_error,
            failed: Mutex::default(),
            recent: Mutex::default(),
        })
    }

    /// Number of workers.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// [`for_each`](Self::for_each) of the envs that are active in the step and have not failed in it, each inside the guard
    /// of its stream.
    ///
    /// # Errors
    /// The first failure, by batch and then by env, with which the run ends: the scenario wants that, or the whole device is
    /// affected. Any other failure is noted.
    pub fn for_each_active<'a, T: Send>(
        &self,
        envs: impl Iterator<Item = (&'a EnvId, &'a StepStatus, Mut<'a, EnvStream>, T)>,
        work: impl Fn(&EnvId, &Stream, T) -> Result<(), Failure> + Sync,
    ) -> Result<(), Failure> {
        let failed = self.failed();
        let active: Vec<_> = envs
            .filter(|(id, status, ..)| status.is_active() && !failed.contains_key(&id.index))
            .map(|(id, _, stream, env)| (*id, (stream, env)))
            .collect();
        drop(failed);
        let failures = self.failures_of(active, |id, (mut stream, env)| {
            let stream = &*stream.0.get();
            let _guard = stream.enter()?;
            work(id, stream, env)
        });
        for (env, failure) in failures {
            if self.on_env_error == OnEnvError::AbortRun || is_of_device(&failure) {
                return Err(failure.in_env(env));
            }
            self.failed().insert(env, failure);
        }
        Ok(())
    }

    /// The envs that have failed since this was last asked, by index.
    pub fn take_failed(&self) -> BTreeMap<usize, Failure> {
        std::mem::take(&mut *self.failed())
    }

    fn failed(&self) -> MutexGuard<'_, BTreeMap<usize, Failure>> {
        lock(&self.failed)
    }

    /// Runs `work` for every env, in parallel, an env on CUDA always on the same worker. Panics of libtorch become errors that
    /// name the env. If several fail, the error of the lowest env index is reported.
    pub fn for_each<T: Send>(
        &self,
        envs: impl IntoIterator<Item = (EnvId, T)>,
        work: impl Fn(&EnvId, T) -> Result<(), Failure> + Sync,
    ) -> Result<(), Failure> {
        match self.failures_of(envs, work).into_iter().next() {
            None => Ok(()),
            Some((env, failure)) => Err(failure.in_env(env)),
        }
    }

    /// By batch where failures know it, then by env.
    fn failures_of<T: Send>(
        &self,
        envs: impl IntoIterator<Item = (EnvId, T)>,
        work: impl Fn(&EnvId, T) -> Result<(), Failure> + Sync,
    ) -> Vec<(usize, Failure)> {
        // One a worker, and the last for all of them.
        let shared = self.threads();
        let mut queues: Vec<_> = (0..=shared).map(|_| Vec::new()).collect();
        for (id, env) in self.longest_first(envs) {
            let queue = self.workers.get(&id.index).copied().unwrap_or(shared);
            queues[queue].push((id, env));
        }
        let queues: Vec<_> = queues.into_iter().map(|queue| Mutex::new(queue.into_iter())).collect();
        let next = |worker: usize| lock(&queues[worker]).next().or_else(|| lock(&queues[shared]).next());
        let failures = Mutex::new(Vec::new());
        // Each free worker takes one env at a time: no worker waits while an env does that it may play.
        self.pool.broadcast(|worker| {
            while let Some((id, env)) = next(worker.index()) {
                let began = Instant::now();
                let result = torch::catch(|| work(&id, env)).map_err(Failure::from).flatten();
                let mut recent = lock(&self.recent);
                let spent = recent.entry(id.index).or_default();
                *spent = *spent / 2 + began.elapsed();
                drop(recent);
                if let Err(failure) = result {
                    lock(&failures).push((id.index, failure));
                }
            }
        });
        let mut failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        failures.sort_unstable_by_key(|(env, failure)| (failure.batch(), *env));
        failures
    }

    /// The env that took longest lately is begun first, so that no worker is left with it at the end. Their order shows in
    /// no result.
    fn longest_first<T>(&self, envs: impl IntoIterator<Item = (EnvId, T)>) -> Vec<(EnvId, T)> {
        let recent = lock(&self.recent);
        let mut envs: Vec<_> = envs.into_iter().collect();
        envs.sort_by_cached_key(|(id, _)| (Reverse(recent.get(&id.index).copied().unwrap_or_default()), *id));
        envs
    }
}

/// The worker of each of `envs` that lives on CUDA. cuBLAS keeps a workspace for every thread and stream, cuDNN its plans for
/// every thread: so envs that share a stream share a worker.
fn workers_on_cuda(envs: &[usize], devices: &[DeviceSpec], workers: usize) -> BTreeMap<usize, usize> {
    let is_cuda = |env: &usize| devices[env % devices.len()] != DeviceSpec::Cpu;
    let cuda_devices = devices.iter().filter(|&&device| device != DeviceSpec::Cpu).count();
    let worker = |place: usize| place % (POOL_STREAMS * cuda_devices) % workers;
    let on_cuda = envs.iter().copied().filter(is_cuda).enumerate();
    on_cuda.map(|(place, env)| (env, worker(place))).collect()
}

/// Does one part of an env's work on a batch. A failure, or libtorch's panic, names the part and the batch. `phase` is the failed
/// part, in the words of an error message.
///
/// # Errors
/// The error of `body`.
pub fn in_batch<T>(phase: &'static str, batch: usize, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let outcome = torch::catch(body).map_err(Failure::from).flatten();
    outcome.map_err(|failure| failure.in_batch(phase, batch))
}

/// Ignores poisoning: inserting and taking leave maps and queues whole even where another thread panicked.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
