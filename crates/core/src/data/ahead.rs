//! Batches that are gathered ahead of time, of data that are not on the device: threads fill kept buffers while the batch
//! before is trained on.
//!
//! The samples of a batch are drawn before any thread hears of it, and batches are taken in the order in which they were
//! asked for: no timing changes what an env gets. After the last batch of a step come those of the next, which are gathered
//! while the step is validated and judged. A batch that could not be gathered is tried once more, since storage that
//! was away for a moment comes back; a second failure of the thread is reported at the batch that needed it.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tch::{Device, Tensor};

use super::DataError;
use super::formats::guarded;
use super::plan::{Due, FeedPlan};
use crate::scenario::DataConfig;
use crate::threads::start_worker;
use crate::torch::HostBuffer;

/// Rows that batches are gathered from, by any thread.
pub(super) trait Rows: Debug + Send + Sync {
    /// Writes the data at `position`, as the feed's plan counts, into `row`. `scratch` is kept between calls.
    fn read(&self, position: i64, row: &mut [u8], scratch: &mut Vec<u8>) -> Result<(), DataError>;
}

/// Between a batch that could not be gathered and the second attempt.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest wait for a batch. Storage that is away for a moment answers sooner, and a run that hangs should end.
const STALLED: Duration = Duration::from_secs(60);

/// The threads that gather the batches of a run. They end with the last feed that they work for.
#[derive(Clone, Debug)]
pub struct Readers {
    pool: Arc<ThreadPool>,
    /// Batches of each env that are requested ahead of time.
    ahead: usize,
    patience: Duration,
}

impl Readers {
    /// Starts `data.workers` threads.
    ///
    /// # Errors
    /// Threads that cannot be started.
    pub fn new(config: DataConfig) -> Result<Self, DataError> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(config.workers)
            .thread_name(|index| format!("reader {index}"))
            .spawn_handler(start_worker)
            .build();
        let pool = pool.map_err(|error| {
            let fault = format!("the threads that gather batches could not be started ({error})");
            DataError::new(fault, "see data.workers")
        })?;
        Ok(Self {
            pool: Arc::new(pool),
            ahead: config.prefetch,
            patience: STALLED,
        })
    }
}

/// The batches of one env that are on their way.
#[derive(Debug)]
pub(super) struct Ring {
    readers: Readers,
    rows: Arc<dyn Rows>,
    env: u64,
    device: Device,
    /// Bytes of a row.
    row: usize,
    free: Vec<HostBuffer>,
    /// Next batch first.
    asked: VecDeque<(Due, Receiver<Filled>)>,
}

/// The result of a batch that was requested from a thread.
type Filled = (HostBuffer, Result<(), DataError>);

impl Ring {
    /// The batches of env `env` on `device`, with rows of `row` bytes.
    pub fn new(readers: &Readers, rows: &Arc<dyn Rows>, row: usize, device: Device, env: u64) -> Self {
        Self {
            readers: readers.clone(),
            rows: Arc::clone(rows),
            env,
            device,
            row,
            free: Vec::new(),
            asked: VecDeque::new(),
        }
    }

    /// Ensures that batch `batch` of the step that was drawn last, and those after it, are on their way.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    pub fn turn_to(&mut self, batch: usize, plan: &mut FeedPlan) -> Result<(), DataError> {
        let due = plan.batch(batch).map(|(due, _)| due);
        if self.asked.front().is_some_and(|(next, _)| Some(*next) != due) {
            self.forget()?;
        }
        while self.asked.len() < self.readers.ahead {
            let Some((due, positions)) = plan.batch(batch + self.asked.len()) else {
                break;
            };
            let filled = self.ask(positions)?;
            self.asked.push_back((due, filled));
        }
        Ok(())
    }

    /// Queues the copy of batch `batch` of the step into `to`, `u8` of as many bytes, and asks for a later one.
    ///
    /// # Errors
    /// A batch that can't be gathered, a lost thread, storage that doesn't answer, or an error of the device.
    pub fn fetch(&mut self, batch: usize, plan: &mut FeedPlan, to: &Tensor) -> Result<(), DataError> {
        self.turn_to(batch, plan)?;
        let Some((_, filled)) = self.asked.pop_front() else {
            return Err(DataError::reader_lost(self.env, "no batch was requested"));
        };
        self.take(&filled, to)?;
        self.turn_to(batch + 1, plan)
    }

    /// Lets go of batches that were requested and never taken, as in a step that failed.
    fn forget(&mut self) -> Result<(), DataError> {
        while let Some((_, filled)) = self.asked.pop_front() {
            let (buffer, _) = self.wait(&filled)?;
            self.free.push(buffer);
        }
        Ok(())
    }

    fn ask(&mut self, positions: &[i64]) -> Result<Receiver<Filled>, DataError> {
        let buffer = match self.free.pop() {
            Some(buffer) => Ok(buffer),
            None => HostBuffer::new(positions.len() * self.row, self.device),
        };
        let mut buffer = buffer.map_err(|cause| DataError::feed_device(self.env, cause))?;
        let (rows, row, env) = (Arc::clone(&self.rows), self.row, self.env);
        let positions = positions.to_vec();
        let (sender, filled) = channel();
        self.readers.pool.spawn_fifo(move || {
            let mut gathered = || {
                let outcome = guarded(|| gather(&*rows, &positions, row, env, &mut buffer));
                outcome.unwrap_or_else(|cause| Err(DataError::reader_lost(env, cause)))
            };
            let outcome = gathered().or_else(|error| {
                tracing::warn!("a batch is read again: {error}");
                thread::sleep(PAUSE);
                gathered()
            });
            // Fails where the feed is dropped: nothing waits for the batch then.
            drop(sender.send((buffer, outcome)));
        });
        Ok(filled)
    }

    /// Queues the copy of a requested batch.
    fn take(&mut self, filled: &Receiver<Filled>, to: &Tensor) -> Result<(), DataError> {
        let (mut buffer, outcome) = self.wait(filled)?;
        let copied = outcome.and_then(|()| {
            let queued = buffer.copy_to(to);
            queued.map_err(|cause| DataError::feed_device(self.env, cause))
        });
        self.free.push(buffer);
        copied
    }

    fn wait(&self, filled: &Receiver<Filled>) -> Result<Filled, DataError> {
        let (env, patience) = (self.env, self.readers.patience);
        filled.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                let fault = format!("no batch was read within {} s", patience.as_secs_f64());
                DataError::feed(env, fault, "check the storage of the data")
            }
            RecvTimeoutError::Disconnected => DataError::reader_lost(env, "it ended"),
        })
    }
}

/// Fills the buffer of env `env`, row after row.
fn gather(rows: &dyn Rows, positions: &[i64], row: usize, env: u64, buffer: &mut HostBuffer) -> Result<(), DataError> {
    let bytes = buffer.bytes_mut();
    let bytes = bytes.map_err(|cause| DataError::feed_device(env, cause))?;
    let mut scratch = Vec::new();
    let mut targets = bytes.chunks_exact_mut(row).zip(positions);
    targets.try_for_each(|(target, &position)| rows.read(position, target, &mut scratch))
}

#[cfg(test)]
mod tests;
