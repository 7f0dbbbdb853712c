//! Where systems put their events between two flushes.

use bevy_ecs::prelude::Resource;

use super::event::Event;
use crate::scenario::{TelemetryConfig, TelemetryLevel};

/// The events since the last flush, in the order of their production. A plain list: an event lives exactly until the
/// flush that hands it to the hub.
#[derive(Debug, Resource)]
pub struct TelemetryOutbox {
    level: TelemetryLevel,
    step_stride: u32,
    events: Vec<Event>,
}

impl TelemetryOutbox {
    /// An empty box.
    pub fn new(config: &TelemetryConfig) -> Self {
        Self {
            level: config.level,
            step_stride: config.step_stride.max(1),
            events: Vec::new(),
        }
    }

    /// What is kept.
    pub const fn level(&self) -> TelemetryLevel {
        self.level
    }

    /// Whether rows of `step` are kept: producers ask before they build them.
    pub const fn wants_rows_of(&self, step: u32) -> bool {
        self.level as u8 >= TelemetryLevel::Full as u8 && step.saturating_sub(1).is_multiple_of(self.step_stride)
    }

    /// Keeps `event` if the level includes it and it is no step row of a skipped step.
    pub fn push(&mut self, event: Event) {
        if self.includes(&event) {
            self.events.push(event);
        }
    }

    /// Pushes each of `events`.
    pub fn extend(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.push(event);
        }
    }

    fn includes(&self, event: &Event) -> bool {
        let is_thinned = event.payload.is_step_row() && event.step.is_some_and(|step| !self.wants_rows_of(step));
        event.payload.level() <= self.level && !is_thinned
    }

    /// Forgets the events since the last flush.
    pub fn discard(&mut self) {
        self.events.clear();
    }

    /// Empties the box into one flush.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Event> {
        self.events.drain(..)
    }
}

#[cfg(test)]
mod tests;
