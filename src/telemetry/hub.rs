//! The hub: orders and stamps events at flush points, folds them into the live state, and hands them to one thread per
//! sink. A sink can fail; the training cannot fail because of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bevy_ecs::prelude::Resource;
use bevy_platform::cell::SyncCell;

use super::encoding::{Num, Timestamp};
use super::event::{Event, Payload};
use super::live::LiveState;
use super::outbox::TelemetryOutbox;
use super::payload::{BestEpisode, RunFinished, RunState, SinkClass, SinkHealth, TelemetryHealth};
use super::queue::{Delivery, Queue};
use super::sink::{RunInfo, Sink, SinkError, TelemetryError};
use crate::scenario::TelemetryLevel;

/// Batches a sink may lag behind.
const QUEUE_CAPACITY: usize = 256;
/// How long a sink may take to write what is queued when the run ends.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(10);
/// How long a sink's thread waits for events before it lets the sink flush.
const IDLE_FLUSH: Duration = Duration::from_secs(2);

/// How the run ended, as its driver sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// How.
    pub status: RunState,
    /// Of a failed run.
    pub error: Option<String>,
}

/// What telemetry cost since it was last asked (for `round_finished`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlushCost {
    /// Time inside flushes.
    pub telemetry: Duration,
    /// Of that, time that durable sinks were waited for.
    pub blocked: Duration,
}

/// What is left to say once all sinks have finished.
#[derive(Clone, Debug, PartialEq)]
pub struct ShutdownReport {
    /// What each sink wrote and lost.
    pub health: TelemetryHealth,
    /// Durable sinks that failed: with `telemetry.require` the run exits with code 5.
    pub failed_durable: Vec<String>,
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
    report: Option<ShutdownReport>,
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
            report: None,
        };
        for sink in started {
            hub.lanes.push(Lane::open(sink, QUEUE_CAPACITY)?);
        }
        Ok(hub)
    }

    /// Changes how long each sink may take at the end of the run.
    pub const fn set_shutdown_patience(&mut self, patience: Duration) {
        self.shutdown_patience = patience;
    }

    /// Sends what the outbox holds, ordered by scope (run, round, env index), then by production. After a
    /// `round_finished`, and at once after a loss, the health of the sinks follows.
    pub fn flush(&mut self, outbox: &mut TelemetryOutbox) {
        let began = Instant::now();
        let mut events: Vec<Event> = outbox.drain().collect();
        if events.is_empty() {
            return;
        }
        if self.report.is_some() {
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
        for lane in self.lanes.iter().filter(|lane| lane.class == SinkClass::Durable) {
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
            sinks: self.lanes.iter().map(Lane::health).collect(),
        }
    }

    /// Time spent in flushes since the last call.
    pub fn take_cost(&mut self) -> FlushCost {
        std::mem::take(&mut self.cost)
    }

    /// Sends `run_finished`, lets every sink write what it has, and joins the threads. A second call does nothing but
    /// report again.
    pub fn finish(&mut self, end: RunEnd) -> ShutdownReport {
        if let Some(report) = &self.report {
            return report.clone();
        }
        let finished = self.run_finished(end);
        self.send(vec![Event::run(finished.clone())]);
        let finished = Arc::new(finished);
        for lane in &self.lanes {
            lane.queue.close(Arc::clone(&finished));
        }
        let patience = self.shutdown_patience;
        for lane in &mut self.lanes {
            lane.join(patience);
        }
        let report = ShutdownReport {
            health: self.health(),
            failed_durable: self
                .lanes
                .iter()
                .filter(|lane| lane.class == SinkClass::Durable && lane.state.has_failed())
                .map(|lane| lane.name.clone())
                .collect(),
        };
        self.report = Some(report.clone());
        report
    }

    fn run_finished(&self, end: RunEnd) -> RunFinished {
        let best = self.live.best_episode.as_ref();
        RunFinished {
            status: end.status,
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
            error: end.error,
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
            let sent = lane.queue.send(batch.clone());
            self.cost.blocked += sent.blocked;
            let mut tally = lane.state.tally();
            tally.dropped += sent.dropped;
            tally.blocked += sent.blocked;
        }
    }

    /// Events lost and errors made so far.
    fn loss(&self) -> u64 {
        self.lanes
            .iter()
            .map(|lane| lane.state.tally())
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
        if self.report.is_none() {
            self.finish(RunEnd {
                status: RunState::Failed,
                error: Some("the run was abandoned before its end".into()),
            });
        }
    }
}

/// What the schedule and a sink's thread both count.
#[derive(Default)]
struct Tally {
    written: u64,
    dropped: u64,
    blocked: Duration,
    errors: u64,
    failure: Option<String>,
}

#[derive(Default)]
struct LaneState(Mutex<Tally>);

impl LaneState {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sink is given up; `lost` events were waiting for it.
    fn fail(&self, why: String, lost: u64) {
        let mut tally = self.tally();
        tally.failure = Some(why);
        tally.errors += 1;
        tally.dropped += lost;
    }

    fn has_failed(&self) -> bool {
        self.tally().failure.is_some()
    }
}

/// One sink with its queue and thread.
struct Lane {
    name: String,
    class: SinkClass,
    queue: Arc<Queue>,
    state: Arc<LaneState>,
    /// Hears once when the thread is done; a receiver may not be shared as the hub is.
    done: SyncCell<mpsc::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    fn open(sink: Box<dyn Sink>, capacity: usize) -> Result<Self, TelemetryError> {
        let name = sink.name().to_owned();
        let class = sink.class();
        let queue = Arc::new(Queue::new(class, capacity));
        let state = Arc::new(LaneState::default());
        let (is_done, done) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("sink-{name}"))
            .spawn({
                let (queue, state) = (Arc::clone(&queue), Arc::clone(&state));
                move || {
                    let outcome = catch_unwind(AssertUnwindSafe(|| serve(sink, &queue, &state)));
                    let failure = match outcome {
                        Ok(Ok(())) => None,
                        Ok(Err(error)) => Some(error.to_string()),
                        Err(_) => Some("the sink panicked".into()),
                    };
                    if let Some(why) = failure {
                        tracing::error!(error = %why, "a telemetry sink failed; the run goes on without it");
                        state.fail(why, queue.abandon());
                    }
                    // The hub no longer listens if it lost patience.
                    let _ = is_done.send(());
                }
            })
            .map_err(|source| TelemetryError::Thread {
                name: name.clone(),
                source,
            })?;
        Ok(Self {
            name,
            class,
            queue,
            state,
            done: SyncCell::new(done),
            thread: Some(thread),
        })
    }

    fn join(&mut self, patience: Duration) {
        match (self.done.get().recv_timeout(patience), self.thread.take()) {
            (Err(mpsc::RecvTimeoutError::Timeout), _) => {
                let why = format!("did not finish within {} s", patience.as_secs_f64());
                self.state.fail(why, self.queue.abandon());
            }
            (_, Some(thread)) => {
                // Panics of the sink were caught inside the thread.
                let _ = thread.join();
            }
            (_, None) => {}
        }
    }

    fn health(&self) -> SinkHealth {
        let tally = self.state.tally();
        SinkHealth {
            name: self.name.clone(),
            class: self.class,
            queued: self.queue.len() as u64,
            queue_cap: self.queue.capacity() as u64,
            written: tally.written,
            dropped: tally.dropped,
            blocked_ms: Num(tally.blocked.as_micros() as f64 / 1000.0),
            errors: tally.errors,
            last_error: tally.failure.clone(),
        }
    }
}

/// The life of a sink's thread. Each call that fails is made once more before the sink is given up.
fn serve(mut sink: Box<dyn Sink>, queue: &Queue, state: &LaneState) -> Result<(), SinkError> {
    loop {
        match queue.receive(IDLE_FLUSH) {
            Delivery::Events(events) => {
                let count = events.len() as u64;
                attempt_twice(state, || sink.write(&events)).inspect_err(|_| state.tally().dropped += count)?;
                state.tally().written += count;
            }
            Delivery::Idle => attempt_twice(state, || sink.flush())?,
            Delivery::Flush => {
                attempt_twice(state, || sink.flush())?;
                queue.flushed();
            }
            Delivery::End(run) => return attempt_twice(state, || sink.finish(&run)),
        }
    }
}

fn attempt_twice(state: &LaneState, mut call: impl FnMut() -> Result<(), SinkError>) -> Result<(), SinkError> {
    call().or_else(|error| {
        tracing::warn!(%error, "a telemetry sink reported an error; trying once more");
        state.tally().errors += 1;
        call()
    })
}

#[cfg(test)]
mod tests;
