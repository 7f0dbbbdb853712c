//! Envs side by side: one rayon pool, one intra-op thread per worker.
//!
//! An env's numbers depend on its own components only, so neither the number of workers nor their timing shows in them.

use std::num::NonZero;

use bevy_ecs::prelude::*;
use rayon::prelude::*;

use super::{EnvId, EnvStream, StepStatus};
use crate::health::Failure;
use crate::torch::{self, Stream};

/// The workers that run the envs of a system.
#[derive(Resource)]
pub struct EnvPool {
    pool: rayon::ThreadPool,
}

impl EnvPool {
    /// `threads` workers, at least one; each gives libtorch one thread inside an op.
    pub fn new(threads: usize) -> Result<Self, Failure> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|index| format!("env-worker-{index}"))
            .start_handler(|_| {
                // Envs run side by side; a worker whose setting fails is slower, not wrong.
                if let Err(error) = torch::set_intra_op_threads(NonZero::<u16>::MIN) {
                    tracing::warn!("an env worker keeps libtorch's own number of threads: {error}");
                }
            })
            .build()
            .map_err(|error| Failure::message(format!("the {threads} env workers could not be started: {error}")))?;
        Ok(Self { pool })
    }

    /// Number of workers.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// [`for_each`](Self::for_each) of the envs that are active in the step, each inside the guard of its stream.
    ///
    /// # Errors
    /// The failure of the lowest env index.
    pub fn for_each_active<'a, T: Send>(
        &self,
        envs: impl Iterator<Item = (&'a EnvId, &'a StepStatus, Mut<'a, EnvStream>, T)>,
        work: impl Fn(&EnvId, &Stream, T) -> Result<(), Failure> + Sync,
    ) -> Result<(), Failure> {
        let active = envs
            .filter(|(_, status, ..)| status.is_active())
            .map(|(id, _, stream, env)| (*id, (stream, env)));
        self.for_each(active, |id, (mut stream, env)| {
            let stream = &*stream.0.get();
            let _guard = stream.enter()?;
            work(id, stream, env)
        })
    }

    /// Runs `work` for every env, in parallel. Panics of libtorch become errors that name the env; of several
    /// failures the one of the lowest env index is reported.
    pub fn for_each<T: Send>(
        &self,
        envs: impl IntoIterator<Item = (EnvId, T)>,
        work: impl Fn(&EnvId, T) -> Result<(), Failure> + Sync,
    ) -> Result<(), Failure> {
        let mut envs: Vec<_> = envs.into_iter().collect();
        envs.sort_unstable_by_key(|(id, _)| *id);
        let failures: Vec<_> = self.pool.install(|| {
            // One env at a time per worker: envs take about equally long, and the slow ones must not queue up.
            envs.into_par_iter()
                .with_max_len(1)
                .filter_map(|(id, env)| {
                    let result = torch::catch(|| work(&id, env)).map_err(Failure::from).flatten();
                    result.err().map(|failure| (id.index, failure))
                })
                .collect()
        });
        match failures.into_iter().next() {
            None => Ok(()),
            Some((env, failure)) => Err(failure.in_env(env)),
        }
    }
}
