//! The way of an event out of the run. Systems put it into the outbox; at the next flush the hub orders and stamps what is
//! there, folds it into the live state, writes it to the run's record and hands it to the sinks. A sink can fail; the training
//! cannot fail because of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bevy_ecs::prelude::Resource;

use super::detect::{DetectorBank, EventTrail};
use super::encoding::{Num, Timestamp};
use super::event::{Event, Payload};
use super::event_log::EventLog;
use super::gap::RecordGap;
use super::lane::{Batch, Lane};
use super::live::LiveState;
use super::mark::EventsMark;
use super::payload::{AnomalyState, RunFinished, RunState};
use super::reader::EVENTS_FILE;
use super::sink::{RunInfo, Sink, TelemetryError};

/// The events since the last flush, in the order of their production. A plain list: an event lives exactly until the
/// flush that hands it to the hub.
#[derive(Debug, Resource)]
pub struct TelemetryOutbox {
    is_recorded: bool,
    events: Vec<Event>,
}

impl TelemetryOutbox {
    /// An empty box. In a run without a record it stays empty.
    pub const fn new(is_recorded: bool) -> Self {
        Self {
            is_recorded,
            events: Vec::new(),
        }
    }

    /// Keeps `event` for the next flush.
    pub fn push(&mut self, event: Event) {
        if self.is_recorded {
            self.events.push(event);
        }
    }

    /// Pushes each of `events`.
    pub fn extend(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.push(event);
        }
    }

    /// Forgets the events since the last flush.
    pub fn discard(&mut self) {
        self.events.clear();
    }
}

/// The one exit of all events of a run.
#[derive(Resource)]
pub struct TelemetryHub {
    log: EventLog,
    lanes: Vec<Lane>,
    live: LiveState,
    detectors: DetectorBank,
    trail: Option<EventTrail>,
    onsets: Vec<Arc<Event>>,
    next_seq: u64,
    started: Instant,
    late_events: u64,
    outage_patience: Duration,
    is_finished: bool,
}

impl TelemetryHub {
    /// Opens the record and starts every sink on its thread. A resumed run continues with the state and the numbers of its
    /// earlier part.
    ///
    /// A disk that fails is waited for as long as `outage_patience`, and sinks twice that when the run ends.
    ///
    /// # Errors
    /// The record cannot be opened, or a sink cannot start.
    pub fn start(run: &RunInfo, sinks: Vec<Box<dyn Sink>>, outage_patience: Duration) -> Result<Self, TelemetryError> {
        let of_sink = |name: &str| {
            let name = name.to_owned();
            move |source| TelemetryError::Start { name, source }
        };
        let log = match &run.earlier {
            None => EventLog::create(&run.directory, &run.run_id),
            Some(earlier) => EventLog::resume(&run.directory, &run.run_id, earlier.written.clone()),
        };
        let log = log.map_err(of_sink(EVENTS_FILE))?;
        let mut lanes = Vec::with_capacity(sinks.len());
        for mut sink in sinks {
            sink.start(run).map_err(of_sink(sink.name()))?;
            lanes.push(Lane::open(sink)?);
        }
        let earlier = run.earlier.clone();
        let (live, next_seq) = earlier.map_or_else(Default::default, |earlier| (earlier.live, earlier.next_seq));
        Ok(Self {
            log,
            lanes,
            live,
            detectors: DetectorBank::default(),
            trail: None,
            onsets: Vec::new(),
            next_seq,
            started: Instant::now(),
            late_events: 0,
            outage_patience,
            is_finished: false,
        })
    }

    /// Looks for anomalies from here on, with detectors that know the run's earlier part. With `keeps_trail` there is a
    /// [`Self::trail`].
    pub fn watch(&mut self, detectors: DetectorBank, keeps_trail: bool) {
        self.detectors = detectors;
        self.trail = keeps_trail.then(EventTrail::default);
    }

    /// Anomalies that have begun in this step, or at the end of this round, until the run has responded to them
    /// ([`Work::AnswerAnomalies`](crate::schedule::Work)).
    pub fn onsets(&self) -> impl Iterator<Item = &Event> {
        self.onsets.iter().map(|event| &**event)
    }

    /// Like [`Self::onsets`], which are empty afterwards.
    pub(crate) fn take_onsets(&mut self) -> Vec<Arc<Event>> {
        std::mem::take(&mut self.onsets)
    }

    /// The events that led to an anomaly, where they are kept.
    pub fn trail(&self) -> Option<&EventTrail> {
        self.trail.as_ref()
    }

    /// Sends what the outbox holds, ordered by scope (run, round, env index), then by production.
    pub fn flush(&mut self, outbox: &mut TelemetryOutbox) {
        let mut events: Vec<Event> = outbox.events.drain(..).collect();
        if events.is_empty() {
            return;
        }
        if self.is_finished {
            if self.late_events == 0 {
                tracing::warn!(
                    kind = events[0].payload.kind(),
                    "an event came after telemetry was closed; it and all later ones are lost"
                );
            }
            self.late_events += events.len() as u64;
            return;
        }
        events.sort_by_key(Event::scope);
        self.send(events);
    }

    /// Puts all events that were sent on disk; returns whether they are there. It waits for a failing disk no longer than the
    /// patience of [`Self::start`], once an outage.
    pub fn settle(&mut self) -> bool {
        self.log.settle(self.outage_patience);
        !self.log.is_failing()
    }

    /// The record so far, whether it is on disk or not.
    pub fn mark(&self) -> EventsMark {
        self.log.mark()
    }

    /// The gap in the record: something is lost, or may yet be because it cannot be written. Waits for a disk that fails as
    /// [`Self::settle`] does.
    pub fn failing(&mut self) -> Option<RecordGap> {
        if self.log.is_failing() {
            self.settle();
        }
        self.log.gap()
    }

    /// Number of the next event.
    pub const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Everything that happened so far, as every view shows it.
    pub const fn live(&self) -> &LiveState {
        &self.live
    }

    /// Sends `run_finished`, puts the record on disk, lets every sink write what it has, and joins the threads. `error` is
    /// that of a failed run. A second call only returns the same.
    ///
    /// Returns the gaps of the record, with those of earlier parts of the run: the run exits with code 5.
    pub fn finish(&mut self, status: RunState, error: Option<String>) -> Vec<RecordGap> {
        if !self.is_finished {
            let mut finished = self.run_finished(status, error);
            self.send(vec![Event::run(finished.clone())]);
            // The last event is included, which has no hash of itself.
            finished.recorded = self.settle().then(|| self.mark());
            let finished = Arc::new(finished);
            for lane in &mut self.lanes {
                lane.close(&finished);
            }
            for lane in &mut self.lanes {
                lane.join(2 * self.outage_patience);
            }
            self.is_finished = true;
        }
        let missing = self.live.missing;
        let earlier = (missing.events > 0).then(|| RecordGap {
            part: EVENTS_FILE.into(),
            lost_events: missing.events,
            round: missing.round,
            why: "an earlier part of the run lost them to a power cut, a kill or a full disk".into(),
        });
        earlier.into_iter().chain(self.log.gap()).collect()
    }

    fn run_finished(&self, status: RunState, error: Option<String>) -> RunFinished {
        RunFinished {
            status,
            rounds_done: self.live.rounds.len() as u32,
            episodes_done: self.live.episodes_done,
            updates: self.live.updates(),
            wall_s: Num(self.started.elapsed().as_secs_f64()),
            rollbacks: self.live.confounders.rollbacks,
            dropped_events: self.lanes.iter().map(|lane| lane.dropped).sum(),
            missing_events: self.live.missing.events + self.log.lost_events(),
            recorded: Some(self.log.mark()),
            error,
        }
    }

    /// Stamps events, and after them the anomalies that they show, and hands them to the live state, the record and every sink.
    fn send(&mut self, events: Vec<Event>) {
        let now = Timestamp::now();
        let mut batch = Batch::with_capacity(events.len());
        for event in events {
            let anomalies = self.detectors.fold(&event);
            for mut event in std::iter::once(event).chain(anomalies) {
                event.seq = self.next_seq;
                event.t = now;
                self.next_seq += 1;
                self.live.apply(&event);
                batch.push(Arc::new(event));
            }
        }
        for event in &batch {
            if let Some(trail) = &mut self.trail {
                trail.note(event);
            }
            if matches!(&event.payload, Payload::Anomaly(anomaly) if anomaly.state == AnomalyState::Onset) {
                self.onsets.push(event.clone());
            }
        }
        self.log.append(&batch);
        for lane in &mut self.lanes {
            lane.send(&batch);
        }
    }
}

/// A run that is dropped before it was finished has panicked or returned early: say so in every sink.
impl Drop for TelemetryHub {
    fn drop(&mut self) {
        self.finish(RunState::Failed, Some("the run was dropped before its end".into()));
    }
}

#[cfg(test)]
mod tests;
