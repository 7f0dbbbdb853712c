//! Typed events, the hub that hands them to sinks, and the live state that every view is drawn from.
//!
//! Systems push [`Event`]s into the [`TelemetryOutbox`]; at flush points the [`TelemetryHub`] orders and stamps them,
//! folds them into its [`LiveState`], writes them to `events.jsonl` and hands them to one thread per [`Sink`]. Telemetry is
//! one-way: nothing that trains, rewards or decides reads the telemetry of its own run, and nothing here touches a tensor.
//! [`read_recording`] shows what an earlier run recorded.

mod encoding;
mod gap;
mod mark;
pub mod statistics;
mod payload;
mod event;
mod phases;
mod reader;
mod seed_lives;
mod anomaly_counts;
mod confounders;
mod metrics;
mod detect;
mod live;
mod sink;
mod event_log;
mod lane;
mod hub;
mod recording;
mod volatile;
#[cfg(any(test, feature = "testing"))]
#[allow(
    missing_docs,
    clippy::expect_used,
    reason = "for tests: one function for each event, of its name"
)]
pub mod examples;

use bevy_app::{App, Plugin};

pub use anomaly_counts::{AnomalyCount, AnomalyCounts};
pub use confounders::Confounders;
pub use detect::{
    Comparison, Detector, DetectorBank, Detectors, EventTrail, Place as ReadingPlace, ReadEvent, Reading, Recent,
    RecentRound,
};
pub use encoding::round;
pub use encoding::{BigInteger, Num, Timestamp};
pub(crate) use encoding::{is_default, round_if_any};
pub use event::{EnvContext, Event, EventKind, Payload, SCHEMA, Severity};
pub(crate) use event_log::cut_record;
pub use gap::{RecordFails, RecordGap};
pub use hub::{TelemetryHub, TelemetryOutbox};
pub use live::{CommittedSeed, EpisodeResult, LiveState, Missing, RoundResult, StepProgress};
pub use mark::{EventsHasher, EventsMark, WrittenRecord};
pub use metrics::{Measure, Metrics};
pub(crate) use metrics::{MeasuredRound, measure_round};
pub use payload::*;
pub use phases::{PhaseClock, RoundTime};
pub(crate) use reader::Place;
pub use reader::{EVENTS_FILE, EventLines, EventReader, LineError, ReadError, find_last};
pub use recording::{RecordEnd, RecordingError, finished_episode, read_recording, record_end};
pub use seed_lives::{Ages, Contribution, Refusals, SeedEnd, SeedEnds, SeedLife, SeedLives, SeedWorth};
pub use sink::{Earlier, RunInfo, Sink, SinkError, Sinks, TelemetryError};
pub use volatile::is_volatile;
pub use volatile::strip_volatile;

/// Provides the outbox that systems write to and the list in which other plugins register their sinks; the run driver
/// starts a [`TelemetryHub`] from that list once the run directory exists.
#[derive(Clone, Copy, Debug, Default)]
pub struct TelemetryPlugin {
    /// True if anything reads events: without a record they are dropped as they come.
    pub is_recorded: bool,
}

impl Plugin for TelemetryPlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(TelemetryOutbox::new(self.is_recorded))
            .init_resource::<Detectors>()
            .init_resource::<Metrics>()
            .init_resource::<PhaseClock>()
            .init_resource::<Sinks>();
    }
}
