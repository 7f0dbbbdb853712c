//! Where systems put their events between two flushes.

use bevy_ecs::prelude::Resource;

use super::event::Event;

/// The events since the last flush, in the order of their production. A plain list: an event lives exactly until the
/// flush that hands it to the hub.
#[derive(Debug, Resource)]
pub struct TelemetryOutbox {
    is_recorded: bool,
    events: Vec<Event>,
}

impl TelemetryOutbox {
    /// An empty box; one of a run without a record stays empty.
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

    /// Empties the box into one flush.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Event> {
        self.events.drain(..)
    }
}
