//! The bounded queue between the schedule and one sink's thread.
//!
//! A durable queue makes the schedule wait when it is full. A live queue gives up the step rows of its oldest batch
//! instead; whatever else that batch holds is kept and delivered first.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::encoding::Num;
use super::event::{Event, Severity};
use super::payload::{RunFinished, SinkClass, SinkHealth};

pub(super) type Batch = Vec<Arc<Event>>;

/// What the sink's thread finds.
pub(super) enum Delivery {
    Events(Batch),
    /// Nothing came within the time given.
    Idle,
    /// Somebody waits until all that was sent is written.
    Flush,
    /// All is delivered and no more will come.
    End(Arc<RunFinished>),
}

#[derive(Default)]
struct Waiting {
    /// What is left of dropped batches: older than every batch.
    kept: Batch,
    batches: VecDeque<Batch>,
    end: Option<Arc<RunFinished>>,
    is_flush_awaited: bool,
    is_abandoned: bool,
}

pub(super) struct Queue {
    pub class: SinkClass,
    capacity: usize,
    waiting: Mutex<Waiting>,
    health: Mutex<SinkHealth>,
    changed: Condvar,
}

impl Queue {
    /// Of the sink `name`.
    pub fn new(name: &str, class: SinkClass, capacity: usize) -> Self {
        Self {
            class,
            capacity,
            waiting: Mutex::default(),
            health: Mutex::new(SinkHealth {
                name: name.into(),
                class,
                queued: 0,
                queue_cap: capacity as u64,
                written: 0,
                dropped: 0,
                blocked_ms: Num(0.0),
                errors: 0,
                last_error: None,
            }),
            changed: Condvar::new(),
        }
    }

    pub fn len(&self) -> usize {
        let waiting = self.lock();
        waiting.batches.len() + usize::from(!waiting.kept.is_empty())
    }

    /// What the schedule and the sink's thread both count; to be held while nothing else of the queue is asked for.
    pub fn tally(&self) -> MutexGuard<'_, SinkHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the sink is doing.
    pub fn health(&self) -> SinkHealth {
        let queued = self.len() as u64;
        SinkHealth {
            queued,
            ..self.tally().clone()
        }
    }

    /// Appends a batch; waits for room or makes it, by class. Returns the time waited.
    pub fn send(&self, batch: Batch) -> Duration {
        let (mut blocked, mut dropped) = (Duration::ZERO, 0);
        let mut waiting = self.lock();
        if waiting.batches.len() >= self.capacity {
            match self.class {
                SinkClass::Durable => {
                    let started = Instant::now();
                    waiting = self
                        .changed
                        .wait_while(waiting, |waiting| {
                            waiting.batches.len() >= self.capacity && !waiting.is_abandoned
                        })
                        .unwrap_or_else(PoisonError::into_inner);
                    blocked = started.elapsed();
                }
                SinkClass::Live => dropped = thin_oldest(&mut waiting),
            }
        }
        if waiting.is_abandoned {
            dropped += batch.len() as u64;
        } else {
            waiting.batches.push_back(batch);
        }
        drop(waiting);
        self.changed.notify_all();
        let mut tally = self.tally();
        tally.blocked_ms.0 += blocked.as_micros() as f64 / 1000.0;
        tally.dropped += dropped;
        blocked
    }

    /// Takes the oldest batch, waiting up to `patience` for one.
    pub fn receive(&self, patience: Duration) -> Delivery {
        let (mut waiting, _) = self
            .changed
            .wait_timeout_while(self.lock(), patience, |waiting| {
                waiting.kept.is_empty()
                    && waiting.batches.is_empty()
                    && waiting.end.is_none()
                    && !waiting.is_flush_awaited
            })
            .unwrap_or_else(PoisonError::into_inner);
        let batch = if waiting.kept.is_empty() {
            waiting.batches.pop_front()
        } else {
            Some(std::mem::take(&mut waiting.kept))
        };
        let end = waiting.end.clone();
        let is_flush_awaited = waiting.is_flush_awaited;
        drop(waiting);
        self.changed.notify_all();
        match (batch, end) {
            (Some(events), _) => Delivery::Events(events),
            (None, Some(run)) => Delivery::End(run),
            (None, None) if is_flush_awaited => Delivery::Flush,
            (None, None) => Delivery::Idle,
        }
    }

    /// Waits up to `patience` until the sink has written all that was sent to it.
    pub fn await_flush(&self, patience: Duration) {
        let mut waiting = self.lock();
        waiting.is_flush_awaited = true;
        self.changed.notify_all();
        // A sink that takes longer goes on writing; its health shows whether it failed.
        let _ = self.changed.wait_timeout_while(waiting, patience, |waiting| {
            waiting.is_flush_awaited && !waiting.is_abandoned
        });
    }

    /// The answer to [`Delivery::Flush`].
    pub fn flushed(&self) {
        self.lock().is_flush_awaited = false;
        self.changed.notify_all();
    }

    /// No more batches will be sent.
    pub fn close(&self, run: Arc<RunFinished>) {
        self.lock().end = Some(run);
        self.changed.notify_all();
    }

    /// The sink has failed: nobody reads on, nobody may wait, and what was waiting is lost.
    pub fn abandon(&self, why: String) {
        let mut waiting = self.lock();
        waiting.is_abandoned = true;
        let lost = waiting.kept.len() + waiting.batches.iter().map(Vec::len).sum::<usize>();
        waiting.kept.clear();
        waiting.batches.clear();
        drop(waiting);
        self.changed.notify_all();
        let mut tally = self.tally();
        tally.last_error = Some(why);
        tally.errors += 1;
        tally.dropped += lost as u64;
    }

    /// A panic in a sink cannot leave the lists half changed, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives up the step rows of the oldest batch and keeps the rest.
fn thin_oldest(waiting: &mut Waiting) -> u64 {
    let oldest = waiting.batches.pop_front().unwrap_or_default();
    let before = oldest.len();
    let kept_before = waiting.kept.len();
    waiting.kept.extend(oldest.into_iter().filter(|event| is_kept(event)));
    (before - (waiting.kept.len() - kept_before)) as u64
}

fn is_kept(event: &Event) -> bool {
    !event.payload.is_step_row() || event.severity >= Severity::Warning
}

#[cfg(test)]
mod tests;
