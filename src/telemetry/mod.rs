//! Typed events, the hub that hands them to sinks, and the live state that every view is drawn from (spec 07).
//!
//! Systems push [`Event`]s into the [`TelemetryOutbox`]; at flush points the [`TelemetryHub`] orders and stamps them,
//! folds them into its [`LiveState`] and hands them to one thread per [`Sink`]. Telemetry is one-way: nothing that trains,
//! rewards or decides reads any of its own run, and nothing here touches a tensor. What an earlier run told is a
//! [`Recording`].

mod encoding;
mod env_status;
mod event;
mod health;
mod hub;
mod live;
mod outbox;
mod payload;
mod queue;
mod reader;
mod recording;
mod sink;
pub mod sinks;
pub mod statistics;
mod volatile;

#[cfg(test)]
pub(crate) mod examples;

use bevy_app::{App, Plugin};

use crate::scenario::TelemetryConfig;

pub use encoding::{ActionId, BigInteger, Num, Timestamp};
pub use env_status::{EnvStatus, EnvStatusTracker};
pub use event::{EnvContext, Event, EventKind, Payload, Severity, severity_of};
pub use health::{SinkHealth, TelemetryHealth};
pub use hub::{FlushCost, RunEnd, ShutdownReport, TelemetryHub};
pub use live::{CommittedSeed, Contribution, EpisodeResult, LiveState, RoundResult, StepProgress};
pub use outbox::TelemetryOutbox;
pub use payload::*;
pub use reader::{EventFile, ReadError, read_events};
pub use recording::{Recording, RecordingError};
pub use sink::{Earlier, RunInfo, Sink, SinkClass, SinkError, Sinks, TelemetryError};
pub use volatile::strip_volatile;

/// The part of the schema that may only grow compatibly (spec 07 §4.3).
pub const SCHEMA_MAJOR: u32 = 1;
pub const SCHEMA_MINOR: u32 = 0;

/// Provides the outbox that systems write to and the list in which other plugins register their sinks; the run driver
/// starts a [`TelemetryHub`] from that list once the run directory exists.
#[derive(Clone, Copy, Debug, Default)]
pub struct TelemetryPlugin {
    pub config: TelemetryConfig,
}

impl Plugin for TelemetryPlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(TelemetryOutbox::new(&self.config))
            .init_resource::<Sinks>();
    }
}
