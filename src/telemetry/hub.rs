//! The hub: orders and stamps events at flush points, folds them into the live state, and hands them to one thread per
//! sink. A sink can fail; the training cannot fail because of it.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bevy_ecs::prelude::Resource;
use bevy_platform::cell::SyncCell;

use super::encoding::{Num, Timestamp};
use super::event::{Event, Payload};
use super::gap::RecordGap;
use super::live::LiveState;
use super::outbox::TelemetryOutbox;
use super::payload::{BestEpisode, RunFinished, RunState, SinkClass, TelemetryHealth};
use super::queue::{Batch, Delivery, Queue, Trouble, round_of};
use super::sink::{HeldBack, RunInfo, Sink, SinkError, TelemetryError};
use crate::scenario::TelemetryLevel;
use crate::torch::catch;

/// Batches a sink may lag behind.
const QUEUE_CAPACITY: usize = 256;
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
    late_events: u64,
    patience: Duration,
    is_finished: bool,
}

impl TelemetryHub {
    /// Starts every sink on its thread. A resumed run goes on with the state and the numbers of its earlier part.
    ///
    /// A sink may fail for as long as `outage_patience`, and take twice that to write what is queued when a checkpoint waits
    /// for it and when the run ends.
    ///
    /// # Errors
    /// If a sink cannot start; those that had started are stopped again.
    pub fn start(run: &RunInfo, sinks: Vec<Box<dyn Sink>>, outage_patience: Duration) -> Result<Self, TelemetryError> {
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
            late_events: 0,
            patience: 2 * outage_patience,
            is_finished: false,
        };
        for sink in started {
            hub.lanes.push(Lane::open(sink, QUEUE_CAPACITY, outage_patience)?);
        }
        Ok(hub)
    }

    /// Sends what the outbox holds, ordered by scope (run, round, env index), then by production. After a
    /// `round_finished`, and at once where a sink fails, works again or has lost something, the health of the sinks
    /// follows.
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
        let has_news = self.tell_trouble();
        if outbox.level() >= TelemetryLevel::Lifecycle && (ends_round || has_news) {
            self.send(vec![Event::run(self.health())]);
        }
        self.cost.telemetry += began.elapsed();
    }

    /// Waits until every durable sink has all that was sent on disk, so that neither a kill nor a power cut from here on
    /// loses any of it. A sink that takes too long is waited for no further, which is said.
    pub fn settle(&mut self) {
        let patience = self.patience;
        for lane in self.lanes.iter_mut().filter(|lane| lane.is_durable()) {
            lane.queue.await_flush(patience);
            lane.tell_trouble();
        }
    }

    /// What keeps the record from being whole: something that a durable sink has lost, or may yet lose because it cannot
    /// write. Waits for a sink that fails as [`Self::settle`] does.
    pub fn failing(&self) -> Option<RecordGap> {
        let patience = self.patience;
        self.lanes.iter().filter(|lane| lane.is_durable()).find_map(|lane| {
            let gap = lane.queue.gap();
            let is_sound = gap.is_none() && (!lane.queue.trouble().is_failing || lane.queue.await_flush(patience));
            gap.or_else(|| if is_sound { None } else { lane.queue.threat() })
        })
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
    /// Returns what durable sinks lack, and what earlier parts of the run have lost: with `telemetry.require` the run
    /// exits with code 5.
    pub fn finish(&mut self, status: RunState, error: Option<String>) -> Vec<RecordGap> {
        if !self.is_finished {
            let finished = self.run_finished(status, error);
            self.send(vec![Event::run(finished.clone())]);
            let finished = Arc::new(finished);
            for lane in &self.lanes {
                lane.queue.close(Arc::clone(&finished));
            }
            for lane in &mut self.lanes {
                lane.join(self.patience);
            }
            self.is_finished = true;
        }
        let missing = self.live.missing;
        let earlier = (missing.events > 0).then(|| RecordGap {
            part: "events.jsonl".into(),
            lost_events: missing.events,
            round: missing.round,
            why: "an earlier part of the run lost them to a power cut, a kill or a full disk".into(),
        });
        let durable = self.lanes.iter().filter(|lane| lane.is_durable());
        earlier
            .into_iter()
            .chain(durable.filter_map(|lane| lane.queue.gap()))
            .collect()
    }

    fn run_finished(&self, status: RunState, error: Option<String>) -> RunFinished {
        let best = self.live.best_episode();
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
            missing_events: self.live.missing.events + self.lost_by_durable(),
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

    fn lost_by_durable(&self) -> u64 {
        let durable = self.lanes.iter().filter(|lane| lane.is_durable());
        durable.map(|lane| lane.queue.tally().dropped).sum()
    }

    /// Says in the log how the sinks fare, where that has changed; whether it has.
    fn tell_trouble(&mut self) -> bool {
        let told: Vec<bool> = self.lanes.iter_mut().map(Lane::tell_trouble).collect();
        told.contains(&true)
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
    /// What people were told of it last.
    told: Trouble,
    /// Hears once when the thread is done; a receiver may not be shared as the hub is.
    done: SyncCell<mpsc::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    fn open(mut sink: Box<dyn Sink>, capacity: usize, outage_patience: Duration) -> Result<Self, TelemetryError> {
        let name = sink.name().to_owned();
        let queue = Arc::new(Queue::new(&name, sink.class(), capacity, outage_patience));
        let (is_done, done) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("sink-{name}"))
            .spawn({
                let queue = Arc::clone(&queue);
                move || {
                    let mut in_hand = Batch::new();
                    let outcome = catch(|| serve(&mut *sink, &queue, &mut in_hand));
                    let failure = match outcome {
                        Ok(Ok(())) => None,
                        Ok(Err(error)) => Some((error.to_string(), sink.held_back())),
                        Err(panic) => Some((format!("the sink panicked: {panic}"), HeldBack::default())),
                    };
                    if let Some((why, held)) = failure {
                        tracing::error!("telemetry sink `{}` is given up: {why}", sink.name());
                        let lost = HeldBack {
                            // A write that failed may have left it with some of what was in hand.
                            events: held.events.max(in_hand.len() as u64),
                            round: held.round.or(round_of(&in_hand)),
                        };
                        queue.abandon(why, lost);
                    }
                    // The hub no longer listens if it lost patience.
                    let _ = is_done.send(());
                }
            })
            .map_err(|source| TelemetryError::Thread { name, source })?;
        Ok(Self {
            queue,
            told: Trouble::default(),
            done: SyncCell::new(done),
            thread: Some(thread),
        })
    }

    fn is_durable(&self) -> bool {
        self.queue.class == SinkClass::Durable
    }

    /// Says in the log how the sink fares, where that has changed; whether it has. Of outages its own thread tells.
    fn tell_trouble(&mut self) -> bool {
        let before = std::mem::replace(&mut self.told, self.queue.trouble());
        let (now, sink) = (self.told, self.queue.health());
        let name = &sink.name;
        if now.is_late && !before.is_late {
            tracing::warn!("telemetry sink `{name}` is slow: a checkpoint goes before what it still has to write");
        }
        if now.has_lost && !before.has_lost {
            tracing::warn!("telemetry sink `{name}` has lost events; telemetry_health counts them");
        }
        now != before
    }

    fn join(&mut self, patience: Duration) {
        match (self.done.get().recv_timeout(patience), self.thread.take()) {
            (Err(mpsc::RecvTimeoutError::Timeout), _) => {
                let why = format!("did not finish within {} s", patience.as_secs_f64());
                self.queue.abandon(why, HeldBack::default());
            }
            (_, Some(thread)) => {
                // Panics of the sink were caught inside the thread.
                let _ = thread.join();
            }
            (_, None) => {}
        }
    }
}

/// The life of a sink's thread. `in_hand` is what it is about to write.
fn serve(sink: &mut dyn Sink, queue: &Queue, in_hand: &mut Batch) -> Result<(), SinkError> {
    loop {
        match queue.receive(IDLE_FLUSH) {
            Delivery::Events(events) => {
                *in_hand = events;
                persist(queue, || sink.write(in_hand))?;
                queue.tally().written += in_hand.len() as u64;
                in_hand.clear();
            }
            Delivery::Idle => persist(queue, || sink.flush())?,
            Delivery::Flush => {
                persist(queue, || sink.sync())?;
                queue.flushed();
            }
            Delivery::End(run) => return persist(queue, || sink.finish(&run)),
        }
    }
}

/// Makes a call until it succeeds, or the run ends without that. An outage is told here, at both ends: the schedule may
/// wait for it, and may not look while it lasts.
fn persist(queue: &Queue, mut call: impl FnMut() -> Result<(), SinkError>) -> Result<(), SinkError> {
    let mut attempt = 0;
    loop {
        match call() {
            Ok(()) => {
                queue.succeeded();
                if attempt > 0 {
                    let name = queue.health().name;
                    let kept = if queue.trouble().has_lost {
                        ""
                    } else {
                        "; nothing is lost"
                    };
                    tracing::warn!("telemetry sink `{name}` writes again{kept}");
                }
                return Ok(());
            }
            Err(error) if !queue.failed(&error, attempt) => return Err(error),
            Err(error) => {
                if attempt == 0 {
                    let name = queue.health().name;
                    tracing::warn!(
                        "telemetry sink `{name}` cannot write ({error}); what it is sent is kept, and it is tried again"
                    );
                }
                attempt += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
