//! Where systems put their events between two flushes (spec 07 §2, §8).

use bevy_ecs::prelude::Resource;

use super::event::{Event, Payload};
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
    pub fn new(config: &TelemetryConfig) -> Self {
        Self {
            level: config.level,
            step_stride: config.step_stride.max(1),
            events: Vec::new(),
        }
    }

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

    pub fn extend(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.push(event);
        }
    }

    /// Whether an event of this payload would be kept, whatever its step.
    pub fn wants(&self, payload: &Payload) -> bool {
        payload.level() <= self.level
    }

    fn includes(&self, event: &Event) -> bool {
        let is_thinned = event.payload.is_step_row() && event.step.is_some_and(|step| !self.wants_rows_of(step));
        self.wants(&event.payload) && !is_thinned
    }

    /// Empties the box into one flush.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Event> {
        self.events.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::examples;

    fn kept(level: TelemetryLevel) -> Vec<&'static str> {
        let mut outbox = TelemetryOutbox::new(&TelemetryConfig {
            level,
            ..TelemetryConfig::default()
        });
        outbox.extend(examples::events());
        outbox.drain().map(|event| event.payload.kind()).collect()
    }

    #[test]
    fn the_level_decides_what_is_kept() {
        assert_eq!(kept(TelemetryLevel::Off), ["run_started", "run_finished"]);
        assert!(kept(TelemetryLevel::Lifecycle).contains(&"seed_germinated"));
        assert!(!kept(TelemetryLevel::Lifecycle).contains(&"env_step"));
        assert!(kept(TelemetryLevel::Lifecycle).contains(&"governor_rollback"));
        let full = kept(TelemetryLevel::Full);
        assert!(full.contains(&"env_step") && !full.contains(&"governor_snapshot"));
        assert_eq!(kept(TelemetryLevel::Debug), Payload::KINDS);
    }

    #[test]
    fn a_stride_thins_step_rows_and_nothing_else() {
        let mut outbox = TelemetryOutbox::new(&TelemetryConfig {
            step_stride: 3,
            ..TelemetryConfig::default()
        });

        for step in 1..=7 {
            let context = examples::context_at(0, 0, step);
            outbox.push(Event::env(context, examples::env_step()));
            outbox.push(Event::env(context, examples::host_stabilized()));
        }

        let (rows, others): (Vec<_>, Vec<_>) = outbox.drain().partition(|event| event.payload.is_step_row());
        let steps: Vec<_> = rows.iter().filter_map(|event| event.step).collect();
        assert_eq!(steps, [1, 4, 7]);
        assert_eq!(others.len(), 7);
    }
}
