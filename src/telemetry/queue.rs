//! The bounded queue between the schedule and one sink's thread.
//!
//! A durable queue makes the schedule wait when it is full. A live queue gives up the step rows of its oldest batch
//! instead; whatever else that batch holds is kept and delivered first.
//!
//! A sink that fails is in an *outage* until a call of it succeeds. It is tried again after pauses that grow, and whenever
//! the schedule asks. The schedule waits for the end of an outage once, and not for long; after that a full queue of a
//! sink that still fails loses what it is sent.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::encoding::Num;
use super::event::{Event, Payload, Severity};
use super::gap::RecordGap;
use super::payload::{RunFinished, SinkClass, SinkHealth};
use super::sink::{HeldBack, SinkError};

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

/// The first pause before a call that failed is made again; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Events of dropped batches that a live queue keeps at most: enough for hours of an outage.
const KEPT_EVENTS: usize = 65_536;

#[derive(Default)]
struct Waiting {
    /// What is left of dropped batches: older than every batch.
    kept: Batch,
    batches: VecDeque<Batch>,
    end: Option<Arc<RunFinished>>,
    is_flush_awaited: bool,
    /// Somebody waits for a sink that failed: the pause is over.
    is_retry_asked: bool,
    /// The sink's newest call failed.
    is_failing: bool,
    /// The schedule has waited for the end of this outage.
    is_patience_spent: bool,
    /// The newest flush was not waited for to its end.
    is_late: bool,
    /// From then on a sink that fails is given up: the run is over.
    ends_at: Option<Instant>,
    /// The round of the first event that was lost.
    lost_since: Option<u32>,
    is_abandoned: bool,
}

impl Waiting {
    fn is_over(&self) -> bool {
        self.ends_at.is_some_and(|end| Instant::now() >= end)
    }

    fn note_loss(&mut self, round: Option<u32>) {
        self.lost_since = self.lost_since.or(round);
    }
}

/// The first round that any of `events` belongs to.
pub(super) fn round_of(events: &[Arc<Event>]) -> Option<u32> {
    events.iter().find_map(|event| event.round)
}

/// How a sink fares, as far as people have to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trouble {
    /// It cannot write; what it is sent is kept.
    pub is_failing: bool,
    /// A checkpoint waited for it in vain.
    pub is_late: bool,
    /// Events are gone for good.
    pub has_lost: bool,
}

pub(super) struct Queue {
    pub class: SinkClass,
    capacity: usize,
    /// How long the schedule waits for the end of an outage.
    outage_patience: Duration,
    waiting: Mutex<Waiting>,
    health: Mutex<SinkHealth>,
    changed: Condvar,
}

impl Queue {
    /// Of the sink `name`.
    pub fn new(name: &str, class: SinkClass, capacity: usize, outage_patience: Duration) -> Self {
        Self {
            class,
            capacity,
            outage_patience,
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
                failing: false,
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
        let (queued, failing) = (self.len() as u64, self.lock().is_failing);
        SinkHealth {
            queued,
            failing,
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
                    waiting = self.wait_for(waiting, Duration::MAX, |waiting| waiting.batches.len() < self.capacity);
                    blocked = started.elapsed();
                }
                SinkClass::Live => dropped = thin_oldest(&mut waiting),
            }
        }
        let is_full = waiting.batches.len() >= self.capacity && self.class == SinkClass::Durable;
        // The end of a run is told whatever it takes: it is the one event that says what is missing.
        let is_end = matches!(batch.last(), Some(event) if matches!(event.payload, Payload::RunFinished(_)));
        if waiting.is_abandoned || is_full && !is_end {
            dropped += batch.len() as u64;
            waiting.note_loss(round_of(&batch));
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

    /// Waits up to `patience` until all that was sent to the sink is on disk; less for a sink that fails. Returns whether
    /// it is.
    pub fn await_flush(&self, patience: Duration) -> bool {
        let mut waiting = self.lock();
        waiting.is_flush_awaited = true;
        waiting.is_retry_asked = true;
        self.changed.notify_all();
        let mut waiting = self.wait_for(waiting, patience, |waiting| !waiting.is_flush_awaited);
        waiting.is_late = waiting.is_flush_awaited;
        !waiting.is_late && !waiting.is_abandoned
    }

    /// Waits until `is_done`, up to `patience`; never for a sink that was given up, and for the end of an outage only once
    /// and no longer than that may take.
    fn wait_for<'a>(
        &self,
        mut waiting: MutexGuard<'a, Waiting>,
        patience: Duration,
        is_done: impl Fn(&Waiting) -> bool,
    ) -> MutexGuard<'a, Waiting> {
        let started = Instant::now();
        while !is_done(&waiting) && !waiting.is_abandoned && started.elapsed() < patience {
            if waiting.is_failing && (waiting.is_patience_spent || started.elapsed() >= self.outage_patience) {
                waiting.is_patience_spent = true;
                break;
            }
            let pause = patience.saturating_sub(started.elapsed()).min(LONGEST_PAUSE);
            let woken = self.changed.wait_timeout(waiting, pause);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        waiting
    }

    /// A call of the sink succeeded: the outage is over, if there was one.
    pub fn succeeded(&self) {
        let mut waiting = self.lock();
        (waiting.is_failing, waiting.is_patience_spent) = (false, false);
    }

    /// A call of the sink failed for the `attempt`-th time in a row, from 0. Waits before the next one, unless somebody
    /// asks for it; false if there is to be none.
    pub fn failed(&self, error: &SinkError, attempt: u32) -> bool {
        let mut tally = self.tally();
        tally.errors += 1;
        tally.last_error = Some(error.to_string());
        drop(tally);
        let mut waiting = self.lock();
        waiting.is_failing = true;
        self.changed.notify_all();
        let pause = FIRST_PAUSE.saturating_mul(1 << attempt.min(16)).min(LONGEST_PAUSE);
        let (mut waiting, _) = self
            .changed
            .wait_timeout_while(waiting, pause, |waiting| !waiting.is_retry_asked && !waiting.is_over())
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut waiting.is_retry_asked) || !waiting.is_over()
    }

    /// What people have to be told of the sink.
    pub fn trouble(&self) -> Trouble {
        let waiting = self.lock();
        let (is_failing, is_late) = (waiting.is_failing, waiting.is_late);
        let is_abandoned = waiting.is_abandoned;
        drop(waiting);
        Trouble {
            is_failing: is_failing && !is_abandoned,
            is_late: is_late && !is_failing && !is_abandoned,
            has_lost: is_abandoned || self.tally().dropped > 0,
        }
    }

    /// What the sink lacks for good; `None` if it has everything or may still get it.
    pub fn gap(&self) -> Option<RecordGap> {
        let round = self.lock().lost_since;
        let has_lost = self.trouble().has_lost;
        let tally = self.tally();
        has_lost.then(|| RecordGap {
            part: tally.name.clone(),
            lost_events: tally.dropped,
            round,
            why: tally.last_error.clone().unwrap_or_else(|| "it was too slow".into()),
        })
    }

    /// What the sink would lack if it were given up now, for a sink that fails.
    pub fn threat(&self) -> Option<RecordGap> {
        let waiting = self.lock();
        let events = waiting.batches.iter().map(Vec::len).sum::<usize>();
        let round = waiting.batches.iter().find_map(|batch| round_of(batch));
        let is_failing = waiting.is_failing;
        drop(waiting);
        let tally = self.tally();
        is_failing.then(|| RecordGap {
            part: tally.name.clone(),
            lost_events: events as u64,
            round,
            why: tally.last_error.clone().unwrap_or_default(),
        })
    }

    /// The answer to [`Delivery::Flush`].
    pub fn flushed(&self) {
        let mut waiting = self.lock();
        (waiting.is_flush_awaited, waiting.is_late) = (false, false);
        drop(waiting);
        self.changed.notify_all();
    }

    /// No more batches will be sent. A sink that fails is tried for a while, and once more if that was waited for before.
    pub fn close(&self, run: Arc<RunFinished>) {
        let mut waiting = self.lock();
        waiting.end = Some(run);
        waiting.is_retry_asked = true;
        let patience = if waiting.is_patience_spent {
            Duration::ZERO
        } else {
            self.outage_patience
        };
        waiting.ends_at = Some(Instant::now() + patience);
        drop(waiting);
        self.changed.notify_all();
    }

    /// The sink is given up: nobody reads on, nobody may wait, and what was waiting is lost, behind what the sink held.
    pub fn abandon(&self, why: String, held: HeldBack) {
        let mut waiting = self.lock();
        waiting.is_abandoned = true;
        let lost = waiting.kept.len() + waiting.batches.iter().map(Vec::len).sum::<usize>();
        let rounds = waiting.batches.iter().find_map(|batch| round_of(batch));
        let round = held.round.or_else(|| round_of(&waiting.kept)).or(rounds);
        waiting.note_loss(round);
        waiting.kept.clear();
        waiting.batches.clear();
        drop(waiting);
        self.changed.notify_all();
        let mut tally = self.tally();
        tally.last_error = Some(why);
        tally.dropped += lost as u64 + held.events;
    }

    /// A panic in a sink cannot leave the lists half changed, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives up the step rows of the oldest batch and keeps the rest, as long as there is room.
fn thin_oldest(waiting: &mut Waiting) -> u64 {
    let oldest = waiting.batches.pop_front().unwrap_or_default();
    let before = oldest.len();
    let kept_before = waiting.kept.len();
    if kept_before >= KEPT_EVENTS {
        return before as u64;
    }
    waiting.kept.extend(oldest.into_iter().filter(|event| is_kept(event)));
    (before - (waiting.kept.len() - kept_before)) as u64
}

fn is_kept(event: &Event) -> bool {
    !event.payload.is_step_row() || event.severity >= Severity::Warning
}

#[cfg(test)]
mod tests;
