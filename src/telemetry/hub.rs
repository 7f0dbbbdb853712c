//! The hub: orders and stamps events at flush points, folds them into the live state, and hands them to one thread per
//! sink. A sink can fail; the training cannot fail because of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bevy_ecs::prelude::Resource;
use bevy_platform::cell::SyncCell;

use super::encoding::{Num, Timestamp};
use super::event::{Event, Payload};
use super::live::LiveState;
use super::outbox::TelemetryOutbox;
use super::payload::{BestEpisode, RunFinished, RunState, SinkClass, TelemetryHealth};
use super::queue::{Delivery, Queue};
use super::sink::{RunInfo, Sink, SinkError, TelemetryError};
use crate::scenario::TelemetryLevel;

/// Batches a sink may lag behind.
const QUEUE_CAPACITY: usize = 256;
/// How long a sink may take to write what is queued when the run ends.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(10);
/// How long a sink's thread waits for events before it lets the sink flush.
const IDLE_FLUSH: Duration = Duration::from_secs(2);

/// What telemetry cost since it was last asked (for `round_finished`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlushCost {
    /// Time inside flushes.
    pub telemetry: Duration,
    /// Of that, time that durable sinks were waited for.
    pub blocked: Duration,
}

/// The one exit of all events of a run.
#[derive(Resource)]
pub struct TelemetryHub {
    lanes: Vec<Lane>,
    live: LiveState,
    next_seq: u64,
    started: Instant,
    cost: FlushCost,
    reported_loss: u64,
    late_events: u64,
    shutdown_patience: Duration,
    is_finished: bool,
}

impl TelemetryHub {
    /// Starts every sink on its thread. A resumed run goes on with the state and the numbers of its earlier part.
    ///
    /// # Errors
    /// If a sink cannot start; those that had started are stopped again.
    pub fn start(run: &RunInfo, sinks: Vec<Box<dyn Sink>>) -> Result<Self, TelemetryError> {
        let mut started = Vec::with_capacity(sinks.len());
        for mut sink in sinks {
            sink.start(run).map_err(|source| TelemetryError::Start {
                name: sink.name().into(),
                source,
            })?;
            started.push(sink);
        }
        let earlier = run.earlier.clone();
        let (live, next_seq) = earlier.map_or_else(Default::default, |earlier| (earlier.live, earlier.next_seq));
        let mut hub = Self {
            lanes: Vec::with_capacity(started.len()),
            live,
            next_seq,
            started: Instant::now(),
            cost: FlushCost::default(),
            reported_loss: 0,
            late_events: 0,
            shutdown_patience: SHUTDOWN_PATIENCE,
            is_finished: false,
        };
        for sink in started {
            hub.lanes.push(Lane::open(sink, QUEUE_CAPACITY)?);
        }
        Ok(hub)
    }

    /// Sends what the outbox holds, ordered by scope (run, round, env index), then by production. After a
    /// `round_finished`, and at once after a loss, the health of the sinks follows.
    pub fn flush(&mut self, outbox: &mut TelemetryOutbox) {
        let began = Instant::now();
        let mut events: Vec<Event> = outbox.drain().collect();
        if events.is_empty() {
            return;
        }
        if self.is_finished {
            self.refuse(&events);
            return;
        }
        events.sort_by_key(Event::scope);
        let ends_round = events
            .iter()
            .any(|event| matches!(event.payload, Payload::RoundFinished(_)));
        self.send(events);
        let loss = self.loss();
        if outbox.level() >= TelemetryLevel::Lifecycle && (ends_round || loss > self.reported_loss) {
            self.reported_loss = loss;
            self.send(vec![Event::run(self.health())]);
        }
        self.cost.telemetry += began.elapsed();
    }

    /// Waits until every durable sink has written all that was sent, so that a process killed from here on loses none
    /// of it.
    pub fn settle(&self) {
        for lane in self.lanes.iter().filter(|lane| lane.queue.class == SinkClass::Durable) {
            lane.queue.await_flush(self.shutdown_patience);
        }
    }

    /// Number of the next event.
    pub const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Everything that happened so far, as every view shows it.
    pub const fn live(&self) -> &LiveState {
        &self.live
    }

    /// How the sinks are doing.
    pub fn health(&self) -> TelemetryHealth {
        TelemetryHealth {
            sinks: self.lanes.iter().map(|lane| lane.queue.health()).collect(),
        }
    }

    /// Time spent in flushes since the last call.
    pub fn take_cost(&mut self) -> FlushCost {
        std::mem::take(&mut self.cost)
    }

    /// Sends `run_finished`, lets every sink write what it has, and joins the threads; `error` is that of a failed run. A
    /// second call does nothing but answer again.
    ///
    /// Returns the durable sinks that failed: with `telemetry.require` the run exits with code 5.
    pub fn finish(&mut self, status: RunState, error: Option<String>) -> Vec<String> {
        if !self.is_finished {
            let finished = self.run_finished(status, error);
            self.send(vec![Event::run(finished.clone())]);
            let finished = Arc::new(finished);
            for lane in &self.lanes {
                lane.queue.close(Arc::clone(&finished));
            }
            for lane in &mut self.lanes {
                lane.join(self.shutdown_patience);
            }
            self.is_finished = true;
        }
        let sinks = self.health().sinks.into_iter();
        let failed = sinks.filter(|sink| sink.class == SinkClass::Durable && sink.last_error.is_some());
        failed.map(|sink| sink.name).collect()
    }

    fn run_finished(&self, status: RunState, error: Option<String>) -> RunFinished {
        let best = self.live.best_episode.as_ref();
        RunFinished {
            status,
            rounds_done: self.live.rounds.len() as u32,
            episodes_done: self.live.episodes_done,
            updates: self.live.updates(),
            wall_s: Num(self.started.elapsed().as_secs_f64()),
            best_rolling_accuracy: self.live.best_rolling_accuracy(),
            final_rolling_accuracy: self.live.rolling_accuracy(),
            best_episode: best.map(|best| BestEpisode {
                episode: best.at.episode,
                accuracy: best.told.final_accuracy,
                param_ratio: best.told.param_ratio,
            }),
            rollbacks: self.live.rollbacks,
            dropped_events: self.health().dropped(),
            error,
        }
    }

    /// Stamps events and hands them to the live state and to every sink.
    fn send(&mut self, events: Vec<Event>) {
        let now = Timestamp::now();
        let batch: Vec<Arc<Event>> = events
            .into_iter()
            .map(|mut event| {
                event.seq = self.next_seq;
                event.t = now;
                self.next_seq += 1;
                self.live.apply(&event);
                Arc::new(event)
            })
            .collect();
        for lane in &self.lanes {
            self.cost.blocked += lane.queue.send(batch.clone());
        }
    }

    /// Events lost and errors made so far.
    fn loss(&self) -> u64 {
        self.lanes
            .iter()
            .map(|lane| lane.queue.tally())
            .map(|tally| tally.dropped + tally.errors)
            .sum()
    }

    fn refuse(&mut self, events: &[Event]) {
        if self.late_events == 0
            && let Some(first) = events.first()
        {
            tracing::warn!(
                kind = first.payload.kind(),
                "an event came after telemetry was closed; it and all later ones are lost"
            );
        }
        self.late_events += events.len() as u64;
    }
}

/// A run that is dropped before it was finished has panicked or returned early: say so in every sink.
impl Drop for TelemetryHub {
    fn drop(&mut self) {
        self.finish(RunState::Failed, Some("the run was abandoned before its end".into()));
    }
}

/// One sink with its queue and thread.
struct Lane {
    queue: Arc<Queue>,
    /// Hears once when the thread is done; a receiver may not be shared as the hub is.
    done: SyncCell<mpsc::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    fn open(sink: Box<dyn Sink>, capacity: usize) -> Result<Self, TelemetryError> {
        let name = sink.name().to_owned();
        let queue = Arc::new(Queue::new(&name, sink.class(), capacity));
        let (is_done, done) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("sink-{name}"))
            .spawn({
                let queue = Arc::clone(&queue);
                move || {
                    let outcome = catch_unwind(AssertUnwindSafe(|| serve(sink, &queue)));
                    let failure = match outcome {
                        Ok(Ok(())) => None,
                        Ok(Err(error)) => Some(error.to_string()),
                        Err(_) => Some("the sink panicked".into()),
                    };
                    if let Some(why) = failure {
                        tracing::error!(error = %why, "a telemetry sink failed; the run goes on without it");
                        queue.abandon(why);
                    }
                    // The hub no longer listens if it lost patience.
                    let _ = is_done.send(());
                }
            })
            .map_err(|source| TelemetryError::Thread { name, source })?;
        Ok(Self {
            queue,
            done: SyncCell::new(done),
            thread: Some(thread),
        })
    }

    fn join(&mut self, patience: Duration) {
        match (self.done.get().recv_timeout(patience), self.thread.take()) {
            (Err(mpsc::RecvTimeoutError::Timeout), _) => {
                let why = format!("did not finish within {} s", patience.as_secs_f64());
                self.queue.abandon(why);
            }
            (_, Some(thread)) => {
                // Panics of the sink were caught inside the thread.
                let _ = thread.join();
            }
            (_, None) => {}
        }
    }
}

/// The life of a sink's thread. Each call that fails is made once more before the sink is given up.
fn serve(mut sink: Box<dyn Sink>, queue: &Queue) -> Result<(), SinkError> {
    loop {
        match queue.receive(IDLE_FLUSH) {
            Delivery::Events(events) => {
                let count = events.len() as u64;
                attempt_twice(queue, || sink.write(&events)).inspect_err(|_| queue.tally().dropped += count)?;
                queue.tally().written += count;
            }
            Delivery::Idle => attempt_twice(queue, || sink.flush())?,
            Delivery::Flush => {
                attempt_twice(queue, || sink.flush())?;
                queue.flushed();
            }
            Delivery::End(run) => return attempt_twice(queue, || sink.finish(&run)),
        }
    }
}

fn attempt_twice(queue: &Queue, mut call: impl FnMut() -> Result<(), SinkError>) -> Result<(), SinkError> {
    call().or_else(|error| {
        tracing::warn!(%error, "a telemetry sink reported an error; trying once more");
        queue.tally().errors += 1;
        call()
    })
}

#[cfg(test)]
mod tests;
